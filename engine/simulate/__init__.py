"""The same decide() in a world of our own: for what-if, for comparing policies, and for tests."""
