"""Which pods fit on what is there, and which new nodes the others need."""
