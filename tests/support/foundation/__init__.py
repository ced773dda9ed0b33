"""Histories of queues in a simulated cluster of FoundationDB."""
