"""The use cases over ports; no AWS, HTTP or web framework, and no clock or dice of their own."""
