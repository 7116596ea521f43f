"""Arguments to one call each. Exit codes: 0 nothing to do or done; 1 refused or failed; 2 changes pending or invalid."""
