"""Complete the name of a queue in a shell."""

from __future__ import annotations

import logging
import shlex
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ..engines import registry
from ..exceptions import PressureError
from .broker import Broker

Command = TypeVar("Command", bound=Callable[..., Any])

#: The most seconds that a completion waits for the broker.
_LIMIT = 1.0


def queue_name(param: str = "name", **settings: Any) -> Callable[[Command], Command]:
    """Add the argument that names a queue, which a shell can complete."""
    return click.argument(param, shell_complete=_names, callback=_not_empty, **settings)


def _not_empty(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    if name == "":
        raise click.BadParameter("a queue's name is not empty")
    return name


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the queues at the broker that the command line names: as many as it sent in time, and
    none if it does not answer. A shell shows no errors."""
    url, prefix = ctx.params.get("url"), ctx.params.get("prefix")
    if param.name == "target":
        url = ctx.params.get("to_url") or url
        prefix = ctx.params.get("to_prefix") or prefix
    warnings.simplefilter("ignore")
    logging.getLogger("pressure_mp").addHandler(logging.NullHandler())
    try:
        if registry.resolve(url, prefix=prefix).capabilities.starts:
            return []  # it would start a server
        broker = Broker(url, prefix)
    except (PressureError, click.UsageError):
        return []
    found: set[str] = set()
    asking = threading.Thread(target=_collect, args=(broker, incomplete, found), daemon=True)
    asking.start()
    asking.join(_LIMIT)
    return sorted(found.copy())


def _collect(broker: Broker, begin: str, found: set[str]) -> None:
    try:
        for page in broker.pages():
            found.update(one.name for one in page if _can_be_inserted(one.name, begin))
    except PressureError:
        return


def _can_be_inserted(name: str, begin: str) -> bool:
    """Tell whether a name begins with ``begin``, and has no character that a shell would need
    quoted."""
    return name.startswith(begin) and shlex.quote(name) == name
