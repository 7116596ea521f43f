"""CEL behind one port: types, two engines, and what is known of an expression without evaluating it."""
