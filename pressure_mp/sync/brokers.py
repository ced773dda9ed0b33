"""Brokers as a whole: which queues there are, and what at a server loses data."""

from __future__ import annotations

from collections.abc import Iterator

from ..drivers import drive
from ..engines import registry
from ..engines.contract.address import Address
from ..engines.contract.brokers import Finding, QueuePage, QueueSummary
from ..exceptions import ArgumentError
from ..operations.brokers import examine_server, list_page


def list_queues(
    *,
    url: str | None = None,
    host: str | None = None,
    port: int | None = None,
    db: int | None = None,
    prefix: str | None = None,
) -> Iterator[QueueSummary]:
    """All queues of every kind at a broker, also anonymous ones, in no particular order.

    Takes the arguments of :class:`pressure_mp.Queue`. The iterator asks the broker for about a
    thousand queues at a time, when they are needed; queues may be created and deleted meanwhile.
    Redis and Valkey are searched in steps (``SCAN``), so that other clients do not have to wait.
    Raises BrokerUnavailable, BrokerError, AddressError.
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
    """Look for settings and events at a broker that lose data, or may: one Finding for each.

    Takes the arguments of :class:`pressure_mp.Queue`. Blocks for a few round trips to each
    server. Raises what :func:`list_queues` raises.
    """
    address = find_address(url, host, port, db, None)
    return drive(examine_server(), registry.engine(address).broker().session())


def find_address(
    url: str | None, host: str | None, port: int | None, db: int | None, prefix: str | None
) -> Address:
    """The address that the arguments and the environment name, as other processes can use it."""
    return registry.resolve(url, host, port, db, prefix).started()


def check_shared(url: str | None) -> None:
    """Raise ArgumentError where no other program can have queues, which this one could find; and
    AddressError."""
    address = registry.resolve(url)
    if address.capabilities.private:
        raise ArgumentError(
            f"no other program can have queues at {address.url}: give the URL of a server, or "
            "embedded:///directory"
        )


def unseen(page: QueuePage, told: set[tuple[str, str]]) -> Iterator[QueueSummary]:
    """The queues of a page that were not told before."""
    for queue in page.queues:
        key = queue.name, queue.discipline
        if key not in told:
            told.add(key)
            yield queue


def _page(address: Address, after: str) -> QueuePage:
    return drive(list_page(after), registry.engine(address).broker().session())
