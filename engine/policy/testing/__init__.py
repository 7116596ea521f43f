"""Tests of policy: cases that people write beside their rules, asked of the very programs that a pass runs."""
