"""The relay node, tried from outside by a peer written from the specification."""
