"""A process whose main thread waits in a queue's operation and gets Control-C, a real SIGINT.

``python interrupted.py URL NAME SCENARIO`` ends with status 0 when all is as it should be
afterwards: nothing lost, no role held, the next client served at once.
"""

from __future__ import annotations

import os
import signal
import sys

from waiting import HOURS, Background, until

from oracle.clients import Client

#: Seconds; a role that was left held would come free after a lease of HOURS.
AT_ONCE = 20.0


def interrupted(client: Client, operation, waiters: int) -> None:
    """Run ``operation`` here, until it makes so many waiters and SIGINT ends it."""

    def interrupt() -> None:
        until(lambda: client.waiters() == waiters)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = Background(interrupt)
    try:
        client.run(operation)
    except KeyboardInterrupt:
        interrupting.result()
        return
    raise AssertionError("the operation ended by itself")


def get_as_holder(client: Client) -> None:
    interrupted(client, client.operations.get(True, None), 1)
    client.put(b"item")
    assert client.get(timeout=AT_ONCE) == b"item"


def get_in_line(client: Client) -> None:
    first = Background(client.get)
    until(lambda: client.waiters() == 1)
    interrupted(client, client.operations.get(True, None), 2)
    third = Background(client.get)
    until(lambda: client.waiters() == 2)
    client.put(b"first")
    client.put(b"third")
    assert (first.result(AT_ONCE), third.result(AT_ONCE)) == (b"first", b"third")


def put_as_holder(client: Client) -> None:
    client.put(b"0")
    interrupted(client, client.operations.put(b"never", True, None), 1)
    assert client.get() == b"0"
    client.put(b"1", timeout=AT_ONCE)
    assert client.get() == b"1"


def put_in_line(client: Client) -> None:
    client.put(b"0")
    first = Background(client.put, b"first")
    until(lambda: client.waiters() == 1)
    interrupted(client, client.operations.put(b"never", True, None), 2)
    third = Background(client.put, b"third")
    until(lambda: client.waiters() == 2)
    got = [client.get(timeout=AT_ONCE) for _ in range(3)]
    assert got == [b"0", b"first", b"third"]
    first.result(AT_ONCE)
    third.result(AT_ONCE)


def join(client: Client) -> None:
    client.put(b"0")
    interrupted(client, client.operations.join(None), 1)
    assert client.get() == b"0"


def main() -> None:
    url, name, scenario = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been started in nohup
    client = Client(url, name, lease=int(1000 * HOURS))
    client.open(1)
    globals()[scenario](client)
    assert client.length() == 0
    until(lambda: not client.roles())
    # A connection that went back with a reply still to come would answer out of step.
    for number in range(5):
        item = b"%d" % number
        client.put(item)
        assert client.length() == 1
        assert client.get() == item


if __name__ == "__main__":
    main()
