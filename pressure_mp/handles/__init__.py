"""The parts of a handle that threads and asyncio share."""
