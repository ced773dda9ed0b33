"""What a handle of either world, threads or asyncio, is made of."""
