"""Nodewright: policy files and a live cluster in, a priced plan and the right GPU nodes out."""
