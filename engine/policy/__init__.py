"""Policy and stack files to values: load, check, lint, compile. The only room that knows YAML, pydantic or CEL."""
