"""Brokers as a whole: which queues there are, and what at a server loses data."""

from __future__ import annotations

from collections.abc import Iterator

from ..drivers import drive
from ..engines import registry
from ..engines.contract.address import Address
from ..engines.contract.brokers import Finding, QueuePage, QueueSummary
from ..operations.brokers import examine_server, list_page


def list_queues(
    *,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
    prefix: str | None = None,
) -> Iterator[QueueSummary]:
    """Every queue of every kind at a broker, anonymous ones too, in no order.

    The arguments are as of :class:`pressure_mp.Queue`. The broker is asked for about a thousand at
    a time, as they are needed; in between others change them. At Redis and Valkey it is searched
    step by step (``SCAN``), so that nobody is held up. Raises BrokerUnavailable, BrokerError,
    AddressError.
    """
    address = find_address(url, host, port, db, prefix)
    told: set[tuple[str, str]] = set()
    after = ""
    while True:
        page = _page(address, after)
        yield from unseen(page, told)
        after = page.after
        if not after:
            return


def examine_broker(
    *,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
) -> list[Finding]:
    """What at a broker loses data, or may: one :class:`pressure_mp.Finding` for each.

    Blocks for a few words with each server. Raises as :func:`list_queues`.
    """
    address = find_address(url, host, port, db, None)
    return drive(examine_server(), registry.engine(address).broker().session())


def find_address(
    url: str | None, host: str | None, port: int | None, db: int | None, prefix: str | None
) -> Address:
    """The address that the arguments and the environment name, as other processes can use it."""
    return registry.resolve(url, host, port, db, prefix).settled()


def unseen(page: QueuePage, told: set[tuple[str, str]]) -> Iterator[QueueSummary]:
    """The queues of a page that were not told before."""
    for queue in page.queues:
        key = queue.name, queue.discipline
        if key not in told:
            told.add(key)
            yield queue


def _page(address: Address, after: str) -> QueuePage:
    return drive(list_page(after), registry.engine(address).broker().session())
