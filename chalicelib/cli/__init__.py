"""The command line: what a developer runs on a machine of their own, beside the API and a relay node."""
