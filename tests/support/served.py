"""The order in which calls are served."""

from __future__ import annotations

import asyncio


class Served:
    """Notes the numbers of calls in the order in which they are served."""

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
        """Whether each call was served before all calls that came later."""
        return self.order == sorted(self.order)

    def begin(self, verb, numbers):
        return [asyncio.ensure_future(verb(number)) for number in numbers]
