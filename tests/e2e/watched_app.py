"""The app of a stack whose connections are watched."""

import os

from tests import egress

if path := os.environ.get(egress.VARIABLE):
    egress.watch_all(path)

from app import app  # after the watch: what it connects to while it loads counts

__all__ = ["app"]
