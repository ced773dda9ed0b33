"""Queues in this process's memory: for threads and tasks, and the specification of every engine.

Each operation is written here as plainly as it can be; tests hold the other engines against it.
"""
