"""Queues in a file of SQLite, which the processes of one host share."""
