"""Requests about the contents of large items, in chunks."""

from __future__ import annotations

import time
from typing import Any

from ....exceptions import PressureError
from ...contract import contents
from ...contract.replies import Outcome
from ...contract.session import ONE_TRY
from ..binding import RedisBinding
from ..caller import Caller, does
from ..one_script import plain
from ..statuses import LOST, MISSING

#: How often in a lease a reader of a content renews it. The content of a result stays as long as
#: the result, without renewals.
RENEWALS = 3


def _store(binding: RedisBinding, request: contents.StoreChunks) -> tuple[Any, ...]:
    token, first, chunks = request
    return token, first, binding.options.lease, chunks


does(contents.StoreChunks)(plain("store", args=_store))


@does(contents.ReadChunks)
async def read_chunks(
    caller: Caller, request: contents.ReadChunks, end: float | None
) -> contents.ReadChunksReply:
    reply = await caller.script("fetch", request, end)
    if reply[0] == LOST:
        return Outcome.LOST
    now, lease = time.monotonic(), caller.binding.options.lease
    if request.first == 0:
        caller.renewed = now
    elif (
        "renew_content" in caller.binding.scripts and now - caller.renewed > lease / 1000 / RENEWALS
    ):
        await caller.script("renew_content", (request.token, lease), end)
        caller.renewed = now
    return Outcome.DONE


@does(contents.SweepContents)
async def sweep_contents(
    caller: Caller, request: contents.SweepContents, end: float | None
) -> contents.SweepContentsReply:
    reply = await caller.script("sweep", request, end)
    return reply[0] != MISSING and bool(reply[1])


async def sweep_all(caller: Caller) -> None:
    """Remove all contents that are no longer needed. Ignores errors: later operations sweep too."""
    try:
        while await sweep_contents(caller, contents.SweepContents(), ONE_TRY):
            pass
    except PressureError:
        pass
