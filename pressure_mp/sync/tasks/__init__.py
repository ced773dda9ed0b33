"""Queues of tasks: what users hold."""
