"""The check that no secret of a test run shows up where it must not: logs, output, answers, tables, traces.

`watch` holds what was made and what was seen; `plugin` feeds it from every test and fails the one that leaks.
Whoever adds a place where something is written hands it to `Watch.seen`.
"""
