"""The use cases over stand-ins for everything else: no AWS, no network, and a clock that is moved."""
