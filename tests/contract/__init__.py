"""One suite that each adapter and its fake both pass; may touch the emulators, and nothing else outside."""
