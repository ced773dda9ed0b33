"""Brokers as a whole, in asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ..drivers import adrive
from ..effects import Operation, T
from ..engines import registry
from ..engines.contract.address import Address
from ..engines.contract.brokers import Finding, QueueSummary
from ..off_loop import off_loop
from ..operations.brokers import examine_server, list_page
from ..sync.brokers import unseen


async def list_queues(
    *,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
    prefix: str | None = None,
) -> AsyncIterator[QueueSummary]:
    """Every queue of every kind at a broker; as :func:`pressure_mp.list_queues`."""
    address = registry.resolve(url, host, port, db, prefix)
    told: set[tuple[str, str]] = set()
    after = ""
    while True:
        page = await _ask(address, list_page(after))
        for queue in unseen(page, told):
            yield queue
        after = page.after
        if not after:
            return


async def examine_broker(
    *,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
) -> list[Finding]:
    """List the settings of a broker that may lose data, as ``pressure_mp.examine_broker`` does."""
    return await _ask(registry.resolve(url, host, port, db, None), examine_server())


async def _ask(address: Address, operation: Operation[T]) -> T:
    if address.capabilities.starts:  # a server, perhaps
        address = await off_loop(address.started)
        await off_loop(registry.engine, address)
    return await adrive(operation, registry.engine(address).broker().asession())
