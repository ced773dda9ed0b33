"""What the arguments of handles may be; what they may not be is an error that says so."""

from __future__ import annotations

import re

from ..engines.contract.address import Address
from ..engines.contract.session import NOBODY, Durability, Options
from ..exceptions import ArgumentError, ArgumentTypeError


def check_name(name: object) -> None:
    """Raise ArgumentTypeError or ArgumentError for what cannot name a queue."""
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"a queue's name is a str, not {type(name).__name__}")
    if name == "":
        raise ArgumentError("a queue's name is empty; leave it out for an anonymous queue")


def check_maxsize(maxsize: object) -> int:
    """The bound for a ``maxsize``, where less than 1 is no bound. Raises ArgumentTypeError."""
    if not isinstance(maxsize, int) or isinstance(maxsize, bool):
        raise ArgumentTypeError(
            f"maxsize is an int, not {type(maxsize).__name__}{ask_for_name(maxsize)}"
        )
    return max(maxsize, 0)


def ask_for_name(given: object) -> str:
    """The end of an error's text where a name may have been given for something else."""
    return f": did you mean name={given!r}?" if isinstance(given, str) else ""


def check_max_items(max_items: object) -> None:
    """Raise ArgumentTypeError or ArgumentError for what is no number of items to get."""
    if not isinstance(max_items, int) or isinstance(max_items, bool):
        raise ArgumentTypeError(f"max_items is an int, not {type(max_items).__name__}")
    if max_items < 1:
        raise ArgumentError(f"max_items is 1 or more, not {max_items}")


def check_ahead(what: str, number: object) -> int:
    """Raise ArgumentTypeError or ArgumentError for what is no number of items to keep here; it was
    given as ``what``."""
    if not isinstance(number, int) or isinstance(number, bool):
        raise ArgumentTypeError(f"{what} is an int, not {type(number).__name__}")
    if not 0 <= number <= 1_000_000:
        raise ArgumentError(f"{what} is {number} items; it must be from 0 to a million")
    return number


def check_lease(lease: object) -> float:
    """Raise ArgumentTypeError or ArgumentError for what cannot be a lease in seconds."""
    if not isinstance(lease, (int, float)) or isinstance(lease, bool):
        raise ArgumentTypeError(f"lease is a number of seconds, not {type(lease).__name__}")
    if not 0.1 <= lease < 86400:
        raise ArgumentError(f"lease is {lease} s; it must be from 0.1 s to a day")
    return float(lease)


def check_reconnect(reconnect: object) -> float:
    """Raise ArgumentTypeError or ArgumentError for what cannot be a time to connect again."""
    if not isinstance(reconnect, (int, float)) or isinstance(reconnect, bool):
        raise ArgumentTypeError(f"reconnect is a number of seconds, not {type(reconnect).__name__}")
    if not 0 <= reconnect <= 86400:
        raise ArgumentError(f"reconnect is {reconnect} s; it must be from 0 s to a day")
    return float(reconnect)


def check_durability(durability: object) -> Durability | None:
    """Raise ArgumentTypeError or ArgumentError for what cannot say who is to confirm a put."""
    if durability is None:
        return None
    if not isinstance(durability, str):
        raise ArgumentTypeError(f"durability is a str or None, not {type(durability).__name__}")
    if durability == "off":
        return NOBODY
    replicas = re.fullmatch(r"replica:0*([1-9]\d{0,3})", durability)
    if not replicas and durability != "fsync":
        raise ArgumentError(
            f"durability is {durability!r}; it is 'replica:N', 'fsync', 'off' or None"
        )
    return Durability(int(replicas[1]) if replicas else 0)


def check_durable(options: Options, address: Address) -> None:
    """Raise ArgumentError if a put is to be confirmed where nobody can; or not, where the server
    alone decides that."""
    if options.durability and not address.capabilities.durable:
        raise ArgumentError(
            f"{address.scheme}:// has neither replicas nor a disk: leave out "
            f"durability={str(options.durability)!r}"
        )
    if options.durability == NOBODY and not address.capabilities.relaxed:
        raise ArgumentError(
            f"durability='off' is for postgresql://; what is at {address.scheme}:// is as "
            "durable as the server's settings make it: leave it out"
        )
