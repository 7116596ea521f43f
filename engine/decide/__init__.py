"""Snapshot + Policy + Catalog -> Plan. Pure: no I/O, no clock, no randomness."""

from engine.decide.decision import decide

__all__ = ["decide"]
