"""Queues in a PostgreSQL database: tables and functions in a schema of their own.

Each request is one call of a function there, which holds the queue's lock only during the call.
"""
