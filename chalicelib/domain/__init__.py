"""The rules, values to values; no I/O, clock, randomness or environment, only the standard library."""
