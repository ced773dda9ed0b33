"""Find the settings and the state of a server with which data can be lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..contract.brokers import Finding

#: Open files that a server needs in addition to one for each client.
_SPARE_FILES = 32
#: With a lower limit, the clients of a few machines with some processes each are refused.
_FEW_CLIENTS = 1000
#: The part of the memory limit above which puts are soon refused.
_NEARLY_FULL = 0.9


def examine(info: bytes | None, config: list[Any] | None) -> list[Finding]:
    """Find the faulty settings of a server, from its replies to INFO and to CONFIG GET; None where
    this user may not ask."""
    if info is None:
        return [_unknown("INFO", "+info")]
    told = dict(line.partition(":")[::2] for line in info.decode(errors="replace").splitlines())
    if config is None:
        return [*_of_state(told), *_of_eviction(told), _unknown("CONFIG GET", "+config|get")]
    texts = [part.decode(errors="replace") for part in config]
    settings = dict(zip(texts[::2], texts[1::2], strict=True))
    return [
        *_of_eviction(told),
        *_of_disk(settings),
        *_of_replicas(told, settings),
        *_of_clients(settings),
        *_of_state(told),
    ]


def _unknown(what: str, right: str) -> Finding:
    return Finding(
        what,
        "refused",
        f"This user may not ask the server for {what}, so this is not checked.",
        f"Ask as a user who may, or grant {right}.",
        loses=False,
    )


def _of_eviction(told: Mapping[str, str]) -> Iterator[Finding]:
    policy, limit = told.get("maxmemory_policy", "noeviction"), told.get("maxmemory", "0")
    if policy != "noeviction" and limit != "0":
        yield Finding(
            "maxmemory-policy",
            policy,
            f"When its {limit} bytes of memory are full, the server removes keys by itself: items "
            "that were acknowledged are lost without an error.",
            "CONFIG SET maxmemory-policy noeviction. Then a put into a full server raises "
            "BrokerFull.",
        )


def _of_disk(settings: Mapping[str, str]) -> Iterator[Finding]:
    if settings.get("appendonly") != "yes":
        saves = settings.get("save", "")
        yield Finding(
            "appendonly",
            settings.get("appendonly", "unknown"),
            "The server has no append-only file: when it ends, what came since the last snapshot "
            f"is lost ({f'save {saves}' if saves else 'and no snapshot is ever made'}).",
            "CONFIG SET appendonly yes, and write it to the server's configuration.",
        )
    elif settings.get("appendfsync") == "no":
        yield Finding(
            "appendfsync",
            "no",
            "The operating system decides when the append-only file is written: when the machine "
            "stops, about the last 30 seconds are lost.",
            "CONFIG SET appendfsync everysec; or always, if not even a second may be lost.",
        )
    elif settings.get("appendfsync") == "everysec":
        yield Finding(
            "appendfsync",
            "everysec",
            "When the machine stops, up to about a second is lost.",
            'Use appendfsync always, or durability="fsync" for the puts that must not be lost.',
            loses=False,
        )


def _of_replicas(told: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[Finding]:
    if told.get("connected_slaves", "0") != "0" and settings.get("min-replicas-to-write") == "0":
        yield Finding(
            "min-replicas-to-write",
            "0",
            "If a replica that is behind is promoted, what it did not have is lost.",
            'Set it to 1 or more; or use durability="replica:1" for the puts that must not be '
            "lost.",
        )
    if told.get("role") == "slave":
        yield Finding(
            "role",
            "replica",
            "This server is a replica: it refuses every change of a queue.",
            "Use the address of the primary, or redis+sentinel://.",
            loses=False,
        )


def _of_clients(settings: Mapping[str, str]) -> Iterator[Finding]:
    clients = int(settings.get("maxclients", "10000"))
    if clients < _FEW_CLIENTS:
        yield Finding(
            "maxclients",
            str(clients),
            "The server takes few connections, perhaps because it may open few files: further "
            "clients are refused.",
            f"Let it open more files (ulimit -n, at least {10000 + _SPARE_FILES}), and set "
            "maxclients to 10000.",
            loses=False,
        )
    idle = settings.get("timeout", "0")
    if idle != "0":
        yield Finding(
            "timeout",
            idle,
            f"The server closes a connection that is idle for {idle} s: clients connect again, "
            "and each time a reply may have been lost.",
            "CONFIG SET timeout 0. Clients that are gone are noticed by tcp-keepalive.",
            loses=False,
        )


def _of_state(told: Mapping[str, str]) -> Iterator[Finding]:
    used, limit = int(told.get("used_memory", "0")), int(told.get("maxmemory", "0"))
    if limit and used > limit * _NEARLY_FULL:
        yield Finding(
            "used_memory",
            str(used),
            f"The server's memory is nearly full (its limit is {limit} bytes).",
            "Get items, purge unused queues, or raise maxmemory.",
            loses=False,
        )
    if told.get("evicted_keys", "0") != "0":
        yield Finding(
            "evicted_keys",
            told["evicted_keys"],
            "The server has removed keys by itself since it started: items may be missing.",
            "Set maxmemory-policy to noeviction, and see which queues have lost keys.",
        )
    for field, file in (
        ("rdb_last_bgsave_status", "snapshot"),
        ("aof_last_write_status", "append-only file"),
    ):
        if told.get(field, "ok") != "ok":
            yield Finding(
                field,
                told[field],
                f"The server could not write its {file} the last time.",
                "See the server's log: often the disk is full.",
            )
