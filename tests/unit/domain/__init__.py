"""The promises of the pure core."""
