"""The way of the request that settles a delivery of one queue and puts on another."""

from __future__ import annotations

from ..contract.forwarding import Forward, Forwarded, ForwardReply, NotSettled
from ..contract.items import Added
from ..contract.task_records import StoredTask
from .ways import Asked, Reply, Settles, does, ways


def _ask(request: Forward, discipline: str) -> Asked:
    source, settle, put = request
    settling = ways[type(settle)].ask(settle, source.discipline)
    queue = source.prefix, source.kind, source.name, source.discipline
    putting = ways[type(put)].ask(put, discipline)
    return putting._replace(settles=Settles(*queue, settling))


def _read(request: Forward, reply: Reply) -> ForwardReply:
    read_put, read_settled = ways[type(request.put)].read, ways[type(request.settle)].read
    status, info, items = reply
    if status == "refused":
        return NotSettled(read_settled(request.settle, Reply(info["status"], info["info"], items)))
    if status != "forwarded":
        found: ForwardReply = read_put(request.put, reply)
        return found
    number = info["number"]
    put = read_put(request.put, Reply(info["put"], info["info"], items[:number]))
    settled = read_settled(request.settle, Reply(info["settled"], info["told"], items[number:]))
    ids = [] if isinstance(put, Added) else put
    return Forwarded(ids, settled if isinstance(settled, StoredTask) else None)


does(Forward, _ask, _read)
