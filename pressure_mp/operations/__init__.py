"""Each operation once, as a generator: no I/O, no engine imports."""
