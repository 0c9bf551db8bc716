"""The only code that touches AWS, the network, the clock and randomness; no rule may be decided here."""
