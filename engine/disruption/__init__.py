"""Which nodes may leave, one file per reason, and the budgets they leave under."""
