"""What runs Relay: resources, policies, packaging, deploying; nothing here enters a function's archive."""
