"""Check the argument ``connection=``: a transaction of the caller."""

from __future__ import annotations

from ..engines.contract.address import Address
from ..engines.contract.session import Binding, Transactional
from ..exceptions import ArgumentError


def transactional(binding: Binding, address: Address) -> Transactional:
    """A binding that can be part of one. Raises ArgumentError where there is none."""
    if not isinstance(binding, Transactional):
        raise ArgumentError(
            f"connection= is for queues in a database, postgresql://; {address.scheme}:// has no "
            "transactions that they could be part of"
        )
    return binding


def check_waits_for_nothing(what: str, seconds: float | None) -> None:
    """Raise ArgumentError for a time to wait in a transaction: its end is what would be waited
    for."""
    if seconds is not None:
        raise ArgumentError(f"{what} cannot go with connection=: in a transaction nothing may wait")
