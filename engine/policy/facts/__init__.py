"""The variables that rules may read: one typed schema, and their values made from the model."""
