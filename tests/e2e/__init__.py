"""The whole local stack against the misbehaving receiver; may not look inside the code under test."""
