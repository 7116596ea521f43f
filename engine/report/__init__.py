"""Tables, JSON and Markdown, from Plan and Outcome only."""
