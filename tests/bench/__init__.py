"""Benchmarks, run by hand: the whole local stack under load, its figures written as JSON."""
