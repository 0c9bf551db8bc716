"""Chats as endpoints: how a message to each platform is addressed, written and sent, and what it answers."""
