"""Behind a pooler that gives each transaction another connection: PgBouncer, if it is there."""

from __future__ import annotations

import shutil
import socket
import subprocess

import pytest
from brokers.postgres import ROLE
from brokers.servers import free_port
from waiting import HOURS, Background, parks, until

from pressure_mp import Queue
from pressure_mp.exceptions import BrokerError

CONFIGURATION = """
[databases]
postgres = host=127.0.0.1 port={server} dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = options
"""


@pytest.fixture(scope="module")
def pooled(postgres):
    """The URL of a pooler that leads to the server."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    port, folder = free_port(), postgres.directory
    (folder / "users").write_text(f'"{ROLE}" ""\n"serial" ""\n')
    file = folder / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(server=postgres.port, port=port, folder=folder))
    process = subprocess.Popen([program, "-q", str(file)], preexec_fn=postgres.begin)
    try:
        until(lambda: process.poll() is not None or answers(port))
        yield f"postgresql://{ROLE}@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait()


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_more_threads_than_its_connections_put_and_get(pooled, name):
    q = Queue(name=name, url=f"{pooled}?prepare=0&listen=no")
    putting = [Background(lambda n=n: [q.put((n, at)) for at in range(10)]) for n in range(4)]
    found = [q.get() for _ in range(40)]
    for one in putting:
        one.result()
    for n in range(4):
        assert [at for who, at in found if who == n] == list(range(10))


def test_a_role_whose_transactions_it_leaves_serializable_is_told_so(postgres, pooled, name):
    postgres.execute("CREATE ROLE serial LOGIN SUPERUSER")
    postgres.execute("ALTER ROLE serial SET default_transaction_isolation = 'serializable'")
    Queue(name=name, url=f"postgresql://serial@127.0.0.1:{postgres.port}/postgres").put("item")
    url = f"{pooled.replace(ROLE, 'serial')}?prepare=0&listen=no"
    with pytest.raises(BrokerError, match=r"SERIALIZABLE.*for the role.*pooler"):
        Queue(name=name, url=url)


def test_who_waits_hears_from_the_server_that_the_url_names(postgres, pooled, name, no_ticks):
    q = Queue(name=name, url=f"{pooled}?prepare=0&listen=127.0.0.1:{postgres.port}", lease=HOURS)
    getting = Background(q.get)
    until(lambda: parks(getting))
    q.put("item")
    assert getting.result() == "item"
