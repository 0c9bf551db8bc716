"""Tests of the simulation: what it promises of itself, and what Relay promises of what it runs."""
