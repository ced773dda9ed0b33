"""Behind a pooler that gives each transaction another connection: PgBouncer, if it is there."""

from __future__ import annotations

import pytest
from brokers.pgbouncer import pooling
from brokers.postgres import ROLE
from waiting import HOURS, Background, parks, until

from pressure_mp import Queue
from pressure_mp.exceptions import BrokerError


@pytest.fixture(scope="module")
def pooled(postgres):
    """The URL of a pooler that gives each transaction another connection."""
    with pooling(postgres, "transaction") as url:
        yield url


def test_more_threads_than_its_connections_put_and_get(pooled, name):
    q = Queue(name=name, url=f"{pooled}?prepare=0&listen=no")
    putting = [Background(lambda n=n: [q.put((n, at)) for at in range(10)]) for n in range(4)]
    found = [q.get() for _ in range(40)]
    for one in putting:
        one.result()
    for n in range(4):
        assert [at for producer, at in found if producer == n] == list(range(10))


def test_a_role_whose_transactions_it_leaves_serializable_is_told_so(postgres, pooled, name):
    postgres.execute("CREATE ROLE serial LOGIN SUPERUSER")
    postgres.execute("ALTER ROLE serial SET default_transaction_isolation = 'serializable'")
    Queue(name=name, url=f"postgresql://serial@127.0.0.1:{postgres.port}/postgres").put("item")
    url = f"{pooled.replace(ROLE, 'serial')}?prepare=0&listen=no"
    with pytest.raises(BrokerError, match=r"SERIALIZABLE.*for the role.*pooler"):
        Queue(name=name, url=url).open()


def test_a_waiting_get_hears_from_the_server_that_the_url_names(postgres, pooled, name, no_ticks):
    q = Queue(name=name, url=f"{pooled}?prepare=0&listen=127.0.0.1:{postgres.port}", lease=HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put("item")
    assert getting.result() == "item"
