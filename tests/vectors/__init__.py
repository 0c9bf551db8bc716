"""Requests as Relay signs them, and what may be taken for one: every verifier is held to them."""
