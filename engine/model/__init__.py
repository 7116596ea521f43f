"""The frozen values that all rooms share. No room's behaviour lives here, and nothing here does I/O."""
