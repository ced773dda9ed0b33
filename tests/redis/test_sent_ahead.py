"""Two calls that are sent together, each of a session of its own: what a reader handed out, and
behind that what comes next."""

from __future__ import annotations

import inside
import pytest
from waiting import LIMIT, Background, until

from pressure_mp import Queue
from pressure_mp.engines.contract.items import Reserve, Reserved
from pressure_mp.engines.contract.replies import NoItem

READER = "someone:reader-1"


def said(handed):
    """A call that says no more than what was handed out."""
    return Reserve(READER, 2, handed, 0, 0, True)


def asked(handed):
    return Reserve(READER, 3, handed, 0, 8, True)


@pytest.fixture
def q(own_server):
    with Queue(8, url=own_server.url, buffering=0, prefetch=0) as handle:
        for item in range(3):
            handle.put(item)
        yield handle
        handle.cancel_join_thread()


@pytest.fixture
def sessions(q):
    """Those of two calls; by then the server has the scripts, and a reader has read three items."""
    for request in (Reserve(READER, 0, 0, 0, 0, True), Reserve(READER, 1, 0, 0, 8, True)):
        session = inside.bind(q).session()
        reply = session.call(request)
        session.end()
    assert len(reply.items) == 3
    made = [inside.bind(q).session() for _ in range(2)]
    yield made
    for session in made:
        session.end()


def test_what_was_handed_out_makes_space_while_the_reader_waits_for_the_next(q, sessions):
    first, second = sessions
    first.send_ahead(said(3), is_first=True)
    second.send_ahead(asked(3), NoItem(), LIMIT, behind=first)
    assert first.call(said(3)) == Reserved([])
    hearing = Background(lambda: second.call(asked(3)))
    with inside.client(q) as client:
        assert client.llen(f"__pressure__:{q.name}") == 0
        until(lambda: client.info("clients")["blocked_clients"] == 1)
    q.put("next")
    assert len(hearing.result().items) == 1


def test_nothing_is_sent_before_the_second_is(q, sessions):
    first, _ = sessions
    with inside.client(q) as client:
        before = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        first.send_ahead(said(3), is_first=True)
        assert client.info("commandstats")["cmdstat_evalsha"]["calls"] == before
        assert first.call(said(3)) == Reserved([])
        assert client.llen(f"__pressure__:{q.name}") == 0


def test_the_second_is_not_sent_where_the_first_was_not(q, sessions):
    first, second = sessions
    second.send_ahead(asked(3), NoItem(), LIMIT, behind=first)
    assert second.call(asked(3)) == Reserved([])


def test_both_are_done_when_their_connection_is_lost(q, sessions):
    first, second = sessions
    first.send_ahead(said(3), is_first=True)
    second.send_ahead(asked(3), NoItem(), LIMIT, behind=first)
    with inside.client(q) as client:
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        mine = client.client_id()
        for other in client.client_list():
            if int(other["id"]) != mine:
                client.client_kill_filter(_id=other["id"])
        until(lambda: client.info("clients")["blocked_clients"] == 0)
    q.put("next")
    assert first.call(said(3)) == Reserved([])
    assert len(second.call(asked(3)).items) == 1


def test_a_session_that_is_interrupted_leaves_no_connection_that_replies(q, sessions):
    first, second = sessions
    first.send_ahead(said(3), is_first=True)
    second.send_ahead(asked(3), NoItem(), LIMIT, behind=first)
    first.call(said(3))
    second.interrupted()
    assert q.qsize() == 0
    with inside.client(q) as client:
        until(lambda: client.info("clients")["blocked_clients"] == 0)
