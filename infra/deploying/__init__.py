"""Putting Relay into an account by CloudFormation, keeping it there, and taking it away again."""
