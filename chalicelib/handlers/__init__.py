"""One module per Lambda: parse, call, answer, log one line; no rule, and nobody but app.py may import it."""
