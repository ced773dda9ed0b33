"""Who is served in which order."""

from __future__ import annotations

import asyncio


class Served:
    """Who was served, in that order."""

    def __init__(self, client):
        self.client = client
        self.order = []

    async def get(self, number):
        item = await self.client.aget()
        self.order.append(number)
        return item

    async def put(self, number):
        await self.client.aput(b"%d" % number)
        self.order.append(number)

    @property
    def is_in_order(self):
        """Whether nobody was served before another one who had come earlier."""
        return self.order == sorted(self.order)

    def begin(self, verb, numbers):
        return [asyncio.ensure_future(verb(number)) for number in numbers]
