"""Relay at a scale that no machine here has: the real delivery plane over modelled AWS, in simulated time."""
