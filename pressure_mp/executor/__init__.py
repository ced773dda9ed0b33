"""``concurrent.futures`` over a queue of tasks: the executor, and the workers that serve it."""
