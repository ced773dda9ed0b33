"""CPython's own tests over our queues, and the list of those that differ."""
