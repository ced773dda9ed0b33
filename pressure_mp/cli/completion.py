"""Complete the name of a queue in a shell."""

from __future__ import annotations

import contextlib
import logging
import shlex
import threading
import warnings
from typing import Any

import click

from ..administration.broker import Broker
from ..engines import registry
from ..exceptions import PressureError
from .output import Decorator

#: The most seconds that a completion waits for the broker.
_LIMIT = 1.0


def queue_name(param: str = "name", **settings: Any) -> Decorator:
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
        capabilities = registry.resolve(url, prefix=prefix).capabilities
        if capabilities.starts or capabilities.private:
            return []  # it would start a server, or has no queues of others
        broker = Broker(url, prefix)
    except PressureError:
        return []
    found: set[str] = set()
    asking = threading.Thread(target=_collect, args=(broker, incomplete, found), daemon=True)
    asking.start()
    asking.join(_LIMIT)
    return sorted(found.copy())


def _collect(broker: Broker, begin: str, found: set[str]) -> None:
    with contextlib.suppress(PressureError):
        for page in broker.pages():
            names = [one.name for one in page if one.name.startswith(begin)]
            # None that a shell would need quoted.
            found.update(name for name in names if shlex.quote(name) == name)
