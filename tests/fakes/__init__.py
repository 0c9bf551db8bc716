"""Stand-ins for the ports, named after how they behave; may not reach AWS or the network."""
