"""Check the arguments of handles."""

from __future__ import annotations

import re

from ..engines.contract.address import Address
from ..engines.contract.levels import Level
from ..engines.contract.session import UNCONFIRMED, Durability, Options
from ..exceptions import ArgumentError, ArgumentTypeError, NotSupportedError
from ..numeric import integer, seconds


def check_name(name: object) -> None:
    """Raise ArgumentTypeError or ArgumentError if this cannot name a queue."""
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"a queue's name is a str, not {type(name).__name__}")
    if name == "":
        raise ArgumentError("a queue's name is empty; leave it out for an anonymous queue")


def check_maxsize(maxsize: object) -> int:
    """Return the bound for a ``maxsize``; less than 1 is no bound. Raises ArgumentTypeError."""
    try:
        return max(integer("maxsize", maxsize), 0)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{error}{ask_for_name(maxsize)}") from None


def ask_for_name(given: object) -> str:
    """Return the end of an error's text where a name may have been given for something else."""
    return f": did you mean name={given!r}?" if isinstance(given, str) else ""


def check_ahead(what: str, given: object) -> int:
    """Return the number of items to keep here, given as ``what``. Raises ArgumentTypeError,
    ArgumentError."""
    number = integer(what, given)
    if not 0 <= number <= 1_000_000:
        raise ArgumentError(f"{what} is {number} items; it must be from 0 to a million")
    return number


def check_lease(lease: object) -> float:
    """Return the lease in seconds. Raises ArgumentTypeError, ArgumentError."""
    given = seconds("lease", lease)
    if not 0.1 <= given < 86400:
        raise ArgumentError(f"lease is {lease} s; it must be from 0.1 s to a day")
    return given


def check_reconnect(reconnect: object) -> float:
    """Return the seconds for which to connect again. Raises ArgumentTypeError, ArgumentError."""
    given = seconds("reconnect", reconnect)
    if not 0 <= given <= 86400:
        raise ArgumentError(f"reconnect is {reconnect} s; it must be from 0 s to a day")
    return given


def check_durability(durability: object) -> Durability | None:
    """Raise ArgumentTypeError or ArgumentError for a value that is no ``durability``."""
    if durability is None:
        return None
    if not isinstance(durability, str):
        raise ArgumentTypeError(f"durability is a str or None, not {type(durability).__name__}")
    if durability == "off":
        return UNCONFIRMED
    replicas = re.fullmatch(r"replica:0*([1-9]\d{0,3})", durability)
    if not replicas and durability != "fsync":
        raise ArgumentError(
            f"durability is {durability!r}; it is 'replica:N', 'fsync', 'off' or None"
        )
    return Durability(int(replicas[1]) if replicas else 0)


def check_level(kind: str, level: Level, address: Address) -> None:
    """Raise NotSupportedError if the engine there lacks a level that ``kind`` needs."""
    if level not in address.capabilities.levels:
        raise NotSupportedError(
            f"{kind} needs {level.value!r}, a level that the engine of {address.scheme}:// "
            "does not have: use Queue or SimpleQueue there, or a broker at redis:// or postgresql://"
        )


def check_durable(options: Options, address: Address) -> None:
    """Raise ArgumentError if a put is to be confirmed where no server can; or not, where the server
    alone decides that."""
    if options.durability and not address.capabilities.durable:
        raise ArgumentError(
            f"{address.scheme}:// has neither replicas nor a disk: leave out "
            f"durability={str(options.durability)!r}"
        )
    if options.durability == UNCONFIRMED and not address.capabilities.relaxed:
        raise ArgumentError(
            f"durability='off' is for postgresql://; an item at {address.scheme}:// is as "
            "durable as the server's settings make it: leave it out"
        )
