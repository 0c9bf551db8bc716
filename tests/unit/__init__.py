"""The core and the use cases over fakes; no network, no emulator, no sleeping."""
