"""Queues in this process's memory: for threads and tasks, and the specification of every engine.

Each request is done here in the plainest way; tests compare the other engines with it.
"""
