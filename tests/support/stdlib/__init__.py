"""CPython's own tests over our queues, and the list of tests that differ."""
