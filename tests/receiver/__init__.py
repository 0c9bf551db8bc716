"""The misbehaving receiver, whose log is the tests' witness; may not import what it judges."""
