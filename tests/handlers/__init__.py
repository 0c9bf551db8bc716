"""The Lambda entry points over the Chalice client and full proxy events; may not reach an emulator."""
