"""The relay node: a WebSocket relay for Paseo clients and daemons, one process per core.

It reads ids, sizes and moments, never what is inside a message. Not a function: docs/relay-node.md says why.
"""
