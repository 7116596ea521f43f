"""Rules as programs: read from files, compiled, evaluated."""
