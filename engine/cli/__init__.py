"""Arguments to one call each. Exit codes: 0 done or nothing to do, 1 refused or failed, 2 pending or invalid."""
