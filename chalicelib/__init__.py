"""Relay's code that is packed into every function; may not import infra, tests or app."""
