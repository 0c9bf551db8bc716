"""Every test tier, with the fakes and the receiver they share; nothing that ships may import it."""
