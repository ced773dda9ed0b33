"""Queues in PostgreSQL beside others that are kept there."""
