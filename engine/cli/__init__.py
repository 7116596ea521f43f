"""Arguments to one call each."""
