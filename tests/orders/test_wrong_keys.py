"""A key that holds what no client of ours writes there is named, and nothing is half done."""

from __future__ import annotations

import pytest
from order_keys import same

from pressure_mp import FairQueue, PriorityQueue, WrongKeyTypeError

pytestmark = pytest.mark.usefixtures("world")

pytestmark = pytest.mark.usefixtures("no_looks")

PARTS = {
    "priority": (PriorityQueue, {}, ("data", "items", "ready", "serial")),
    "fair": (FairQueue, {"key": same}, ("data", "items", "ready", "tenants", "clock")),
}
CASES = [(kind, part) for kind, (_, _, parts) in PARTS.items() for part in parts]


@pytest.mark.parametrize(("kind", "part"), CASES)
def test_a_key_of_another_type_is_named_and_nothing_is_changed(kind, part, server, name):
    make, options, _ = PARTS[kind]
    q = make(name=name, url=server.url, **options)
    q.put(1)
    with server.client() as client:
        wrong = f"__pressure__:mp:{{{name}}}:{part}"
        client.rename(wrong, wrong + "-right")
        if part == "data":
            client.set(wrong, "x")
        else:
            client.zadd(wrong, {"x": 1})

        def everything():
            keys = sorted(client.scan_iter(match=f"*{name}*"))
            return {key: client.dump(key) for key in keys if b":kept:" not in key}

        before = everything()
        for call in (lambda: q.put(2), q.get):
            if part == "serial" and call == q.get:
                continue  # it is of no use to a get
            with pytest.raises(WrongKeyTypeError, match=part):
                call()
            assert everything() == before
        client.rename(wrong + "-right", wrong)
        assert q.get() == 1
        q.delete()


def test_a_serial_that_is_no_number_is_named_and_nothing_is_changed(server, name):
    q = PriorityQueue(name=name, url=server.url)
    q.open()
    with server.client() as client:
        client.set(f"__pressure__:mp:{{{name}}}:serial", "many")
        with pytest.raises(WrongKeyTypeError, match=r"serial.*'many'"):
            q.put(1)
        assert (q.qsize(), q.stats().produced_messages) == (0, 0)
        q.delete()
