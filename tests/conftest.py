"""What every test runs under; the fixtures of one tier belong into that tier's own conftest."""

from hypothesis import settings

# Two busy cores make any example late, which says nothing about the code.
settings.register_profile("relay", parent=settings(deadline=None, print_blob=True))
settings.load_profile("relay")
