"""The one-machine runtime: emulator, API server, event sources; chalicelib may not know of it."""
