"""The engine of stores of ordered keys over etcd: a real server with optimistic transactions.

It is a module of ``pressure_mp.engines`` while ``brokers/etcd.py`` makes it one. A transaction
reads all at one revision. Its commit compares the revision of each key that it read, and says that
each range has no newer key, before it writes.
"""

from __future__ import annotations

import json
import os
import random
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Any

from ..exceptions import BrokerUnavailable
from .contract.address import Capabilities, SimpleAddress
from .kv.engine import KvEngine
from .kv.store import Busy, Traits

#: Seconds for which a client waits for a reply, and for which it tries.
_REPLY, _PATIENCE = 1.0, 30.0
_LOST = (OSError, HTTPException, ValueError)


def _text(raw: bytes) -> str:
    return b64encode(raw).decode()


class EtcdTxn:
    """A transaction: what it read, and what it writes."""

    def __init__(self, ask: Callable[[str, Any], Any]) -> None:
        self._ask = ask
        self._revision = 0
        self._seen: dict[bytes, int] = {}
        self._ranges: list[tuple[bytes, bytes]] = []
        self._writes: dict[bytes, bytes | None] = {}

    def _list(self, **asked: Any) -> list[Any]:
        found = self._ask("range", {"revision": self._revision, **asked})
        self._revision = self._revision or int(found["header"]["revision"])
        return [
            (b64decode(one["key"]), b64decode(one.get("value", "")), int(one["mod_revision"]))
            for one in found.get("kvs", ())
        ]

    def get(self, key: bytes, *, snapshot: bool = False) -> bytes | None:
        if key in self._writes:
            return self._writes[key]
        found = self._list(key=_text(key))
        if not snapshot:
            self._seen[key] = found[0][2] if found else 0
        return found[0][1] if found else None

    def range(
        self, begin: bytes, end: bytes, limit: int, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        if not limit:
            return []
        written = {key: value for key, value in self._writes.items() if begin <= key < end}
        # So many may be removed in this transaction.
        asked = limit + sum(value is None for value in written.values())
        order = {"sort_order": "DESCEND" if reverse else "ASCEND", "sort_target": "KEY"}
        there = self._list(key=_text(begin), range_end=_text(end), limit=asked, **order)
        self._seen.update((key, revision) for key, _, revision in there)
        if len(there) == asked:
            last = there[-1][0]
            begin, end = (last, end) if reverse else (begin, last + b"\0")
        self._ranges.append((begin, end))
        merged = {key: value for key, value, _ in there}
        merged |= {key: value for key, value in written.items() if begin <= key < end}
        kept = [(key, value) for key, value in merged.items() if value is not None]
        return sorted(kept, reverse=reverse)[:limit]

    def set(self, key: bytes, value: bytes) -> None:
        self._writes[key] = value

    def clear(self, key: bytes) -> None:
        self._writes[key] = None

    def clear_range(self, begin: bytes, end: bytes) -> None:
        for key, _ in self.range(begin, end, 10_000):
            self.clear(key)

    def add(self, key: bytes, number: int) -> None:
        before = int.from_bytes(self.get(key) or b"", "little", signed=True)
        self.set(key, (before + number).to_bytes(8, "little", signed=True))

    def append(self, prefix: bytes, value: bytes) -> None:
        last = b"last" + prefix
        self.add(last, 1)
        number = int.from_bytes(self.get(last) or b"", "little")
        self.set(prefix + b"\x05" + number.to_bytes(12, "big"), value)

    def depend(self, key: bytes) -> None:
        self.get(key)

    @property
    def writes(self) -> bool:
        return bool(self._writes)

    def request(self) -> dict[str, Any]:
        """The request that commits it, unless something changed."""
        same = [
            {"key": _text(key), "target": "MOD", "result": "EQUAL", "mod_revision": revision}
            for key, revision in self._seen.items()
        ]
        newer = {"target": "MOD", "result": "LESS", "mod_revision": self._revision + 1}
        empty = [{"key": _text(b), "range_end": _text(e), **newer} for b, e in self._ranges]
        writes = [
            {"request_delete_range": {"key": _text(key)}}
            if value is None
            else {"request_put": {"key": _text(key), "value": _text(value)}}
            for key, value in self._writes.items()
        ]
        return {"compare": same + empty, "success": writes}


class EtcdStore:
    """The keys of one server. ``loses`` is the share of commits whose reply is lost."""

    traits = Traits(optimistic=True, one_host=True)

    def __init__(self, port: int, loses: float) -> None:
        self._port, self._loses = port, loses
        self._chance = random.Random(port)
        self.unknown = 0

    def _once(self, verb: str, asked: Any) -> Any:
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=_REPLY)) as connection:
            connection.request("POST", f"/v3/kv/{verb}", json.dumps(asked))
            if verb == "txn" and self._chance.random() < self._loses:
                raise ConnectionResetError
            with connection.getresponse() as response:
                found = json.load(response)
                if response.status != 200:
                    raise HTTPException(found)
                return found

    def _ask(self, verb: str, asked: Any) -> Any:
        """Ask until there is an answer."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._once(verb, asked)
            except _LOST as error:
                if time.monotonic() > end:
                    raise BrokerUnavailable(str(error)) from error
                time.sleep(0.05)

    def write(self, body: Any, fate: Any, how: Any) -> Any:
        if not how.wait:
            raise Busy
        while True:
            txn = EtcdTxn(self._ask)
            reply = body(txn)
            if not txn.writes or self._is_committed(txn):
                if fate is not None:
                    fate.is_done = True
                return reply

    def _is_committed(self, txn: EtcdTxn) -> bool:
        note = b"note" + os.urandom(8)
        txn.depend(note)
        txn.set(note, b"done")
        try:
            return bool(self._once("txn", txn.request()).get("succeeded"))
        except _LOST:
            self.unknown += 1
        # The transaction is done if it wrote its note, or else never.
        is_done = {
            "key": _text(note),
            "target": "VALUE",
            "result": "EQUAL",
            "value": _text(b"done"),
        }
        never = {"request_put": {"key": _text(note), "value": _text(b"never")}}
        return bool(self._ask("txn", {"compare": [is_done], "failure": [never]}).get("succeeded"))

    def after_fork(self) -> None:
        """Do nothing, in a forked child: each call has a connection of its own."""

    def close(self) -> None:
        """Do nothing, as in a forked child."""


#: The server at a port, and how probable it is that a reply is lost.
EtcdAddress = partial(SimpleAddress, "etcd", Capabilities(persistent=True, durable=True))


def parse(url: Any, prefix: str, variables: Any) -> SimpleAddress:
    return EtcdAddress(url.place + url.path, prefix)


class EtcdEngine(KvEngine):
    """The queues of one server."""

    def __init__(self, address: SimpleAddress) -> None:
        server, _, loses = address.place.partition("/")
        super().__init__(address, EtcdStore(int(server.rpartition(":")[2]), float(loses)))
