"""How a child process tells the supervisor that it is ready: one byte on a pipe it was given."""

import os


def say_ready(descriptor: int | None) -> None:
    """Tell whoever started this process that it now serves; nothing when nobody asked."""
    if descriptor is not None:
        os.write(descriptor, b"1")
        os.close(descriptor)
