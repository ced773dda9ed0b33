"""Check the argument ``connection=``: a transaction of the caller."""

from __future__ import annotations

from ..engines.contract.address import Address
from ..engines.contract.session import Binding, Transactional
from ..exceptions import ArgumentError


def transactional(binding: Binding, address: Address) -> Transactional:
    """Return the binding, which can be part of a transaction. Else raises ArgumentError."""
    if not isinstance(binding, Transactional):
        raise ArgumentError(
            "connection= is for queues in a database, postgresql:// or sqlite://; "
            f"{address.scheme}:// has no transactions that they could be part of"
        )
    return binding


def check_waits_for_nothing(what: str, seconds: float | None) -> None:
    """Raise ArgumentError for a time to wait in a transaction: nothing happens before its end."""
    if seconds is not None:
        raise ArgumentError(f"{what} cannot go with connection=: in a transaction nothing may wait")
