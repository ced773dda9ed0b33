"""Queues of tasks for asyncio."""
