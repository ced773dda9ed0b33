"""Ways to reach a server: TCP, unix socket, TLS, logins, databases, prefixes."""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import multiprocessing
import os
import pickle
import signal
import threading

import inside
import pytest
import trustme
from brokers import rights
from brokers.servers import Server
from ports import free_port
from programs import connections as targets
from waiting import HOURS, LIMIT, Background, blocked, lasting, parks, until

import pressure_mp
from pressure_mp import PressureQueue, Queue
from pressure_mp.drivers import adrive
from pressure_mp.engines import registry
from pressure_mp.engines.blocking_coroutines import finish
from pressure_mp.engines.redis import connecting
from pressure_mp.engines.redis.blocking_wire import BlockingWire
from pressure_mp.engines.redis.loop_wire import LoopWire


def test_a_unix_socket_serves_as_tcp_does(server, name):
    with Queue(name=name, url=server.unix_url) as q:
        q.put(1)
        assert Queue(name=name, url=server.url).get() == 1
        assert q.url == server.unix_url
        q.delete()


def test_databases_and_prefixes_keep_queues_apart(server, name):
    q = Queue(name=name, url=f"{server.url}/3")
    q.put("three")
    assert not PressureQueue(name, url=server.url).exists()
    assert PressureQueue(name, url=f"{server.unix_url}?db=3").exists()
    other = Queue(name=name, url=f"{server.url}/3", prefix="other")
    assert other.empty()
    q.delete()
    other.delete()


def test_a_connection_reads_no_file_about_installed_packages(server, name, monkeypatch):
    """redis-py would, for each one: that takes longer than all the rest of making it."""

    def refuse(package):
        raise AssertionError(f"the metadata of {package} was read")

    monkeypatch.setattr(importlib.metadata, "version", refuse)
    with Queue(name=name, url=server.url, prefix=name) as q:  # which no connection is there for
        q.put(1)
        q.delete()


def test_a_connection_in_a_cycle_is_closed_when_it_is_collected(valkey, name, monkeypatch):
    """Also where the collector comes to the socket first; left open it is a ResourceWarning."""
    make = connecting.make

    def make_older(*args):
        connection = make(*args)
        gc.collect(0)
        return connection

    monkeypatch.setattr(connecting, "make", make_older)
    with Queue(name=name, url=valkey.url) as q:
        address = inside.engine(q).address
    wire = finish(BlockingWire.open(address))
    number, wire.cycle = wire.id, wire
    client = valkey.client()
    assert client.client_list(client_id=[number])
    del wire
    gc.collect()
    until(lambda: not client.client_list(client_id=[number]))


def test_the_environment_says_where_the_broker_is(valkey, name, monkeypatch):
    monkeypatch.setenv("REDIS_SERVER", "127.0.0.1")
    monkeypatch.setenv("REDIS_PORT", str(valkey.port))
    monkeypatch.setenv("REDIS_DB", "4")
    monkeypatch.setenv("PRESSURE_PREFIX", name)
    q = Queue(name="q")
    q.open()
    assert q.url == f"{valkey.url}/4"
    client = valkey.client()
    client.select(4)
    assert client.exists(f"{name}:q:bound")
    client.close()
    q.delete()
    monkeypatch.setenv("PRESSURE_URL", f"{valkey.url}/5")
    assert PressureQueue("q").url == f"{valkey.url}/5"
    assert PressureQueue("q", db=6).url == f"{valkey.url}/6"


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """A redis-server that speaks TLS only and asks for a client certificate."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for role in ("server", "client"):
        issued = authority.issue_cert("127.0.0.1", common_name=role)
        issued.private_key_pem.write_to_path(folder / f"{role}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{role}.pem")
    port = free_port()
    server = Server(
        "redis",
        (
            *("--tls-port", str(port), "--tls-ca-cert-file", str(folder / "ca.pem")),
            *("--tls-cert-file", str(folder / "server.pem")),
            *("--tls-key-file", str(folder / "server.key")),
        ),
    )
    try:
        server.start()
        yield f"rediss://127.0.0.1:{port}", folder
    finally:
        server.stop()


def test_tls_with_an_own_authority_and_a_client_certificate(tls, name):
    url, folder = tls
    query = (
        f"?ssl_ca_certs={folder}/ca.pem&ssl_certfile={folder}/client.pem"
        f"&ssl_keyfile={folder}/client.key"
    )
    q = Queue(2, name, url=url + query)
    q.put(os.urandom(300_000))  # more than one TLS record
    assert len(q.get()) == 300_000
    getting = Background(q.get)
    with pytest.raises(pressure_mp.Empty):
        q.get(timeout=0.2)
    q.put("over TLS")
    assert getting.result() == "over TLS"
    q.delete()


def test_tasks_of_a_loop_share_a_connection_with_tls(tls, name):
    url, folder = tls
    query = (
        f"?ssl_ca_certs={folder}/ca.pem&ssl_certfile={folder}/client.pem"
        f"&ssl_keyfile={folder}/client.key"
    )
    q = Queue(0, name, url=url + query, serializer="raw")
    q.open()
    operations, bound = inside.operations(q), inside.bind(q)
    items = [os.urandom(30_000) for _ in range(50)]  # more than one TLS record each

    async def exchange():
        await asyncio.gather(
            *(adrive(operations.put(item, True, None), bound.asession()) for item in items)
        )
        getting = [adrive(operations.get(True, None), bound.asession()) for _ in items]
        return await asyncio.gather(*getting)

    assert asyncio.run(exchange()) == items
    q.delete()


def test_tls_refuses_a_server_that_the_authority_did_not_sign(tls, name):
    with pytest.raises(pressure_mp.BrokerUnavailable, match=r"(?i)certificate"):
        Queue(name=name, url=tls[0]).open()


def test_tls_refuses_a_server_of_another_name(tls, name):
    url, folder = tls
    with pytest.raises(pressure_mp.BrokerUnavailable, match=r"(?i)mismatch|not valid for"):
        Queue(
            name=name, url=f"{url.replace('127.0.0.1', 'localhost')}?ssl_ca_certs={folder}/ca.pem"
        ).open()


def test_tls_without_the_client_certificate_that_the_server_asks_for_is_refused(tls, name):
    url, folder = tls
    with pytest.raises(pressure_mp.BrokerUnavailable, match=r"(?i)certificate|closed|reset"):
        Queue(name=name, url=f"{url}?ssl_ca_certs={folder}/ca.pem", reconnect=0).open()


def test_a_login_is_used_and_the_password_never_shown(name):
    server = Server("valkey").start()
    try:
        client = server.client()
        client.execute_command("ACL", "SETUSER", "app", "on", ">s3cret/word", "~*", "+@all")
        client.execute_command("ACL", "SETUSER", "default", "off")
        client.close()
        url = f"redis://app:s3cret%2Fword@127.0.0.1:{server.port}"
        q = Queue(name=name, url=url)
        q.open()
        q.put(1)
        assert pickle.loads(pickle.dumps(q)).get() == 1
        assert q.url == f"redis://app@127.0.0.1:{server.port}/0"
        for text in (repr(q), str(q.stats())):
            assert "s3cret" not in text
        with pytest.raises(pressure_mp.BrokerError, match="refuses the login") as caught:
            Queue(name=name, url=f"redis://app:wr0ng@127.0.0.1:{server.port}").open()
        assert "wr0ng" not in str(caught.value)
        with pytest.raises(pressure_mp.BrokerError):
            Queue(name=name, url=server.url).open()
    finally:
        server.stop()


def test_an_unpickled_handle_connects_when_it_is_first_used(own_server, name):
    q = Queue(name=name, url=own_server.url)
    copy = pickle.dumps(q)
    client = own_server.client()
    before = client.info("stats")["total_connections_received"]
    handles = [pickle.loads(copy) for _ in range(1000)]
    assert client.info("stats")["total_connections_received"] == before
    client.close()
    assert handles[0].exists()
    q.delete()


def test_a_handle_and_its_connections_stay_few_under_many_operations(own_server, name):
    q = Queue(name=name, url=own_server.url)
    q.open()
    client = own_server.client()
    before = client.info("clients")["connected_clients"]
    for number in range(50):
        q.put(number)
    for _ in range(50):
        q.get()
    assert client.info("clients")["connected_clients"] <= before
    client.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_never_uses_its_parents_connection(valkey, name):
    q = Queue(name=name, url=valkey.url)
    results = Queue(name=f"{name}-results", url=valkey.url)
    getting = Background(q.get)  # one connection is in use while the process forks
    until(lambda: parks(getting))
    children = [
        multiprocessing.get_context("fork").Process(target=targets.put_some, args=(results, n))
        for n in range(3)
    ]
    for child in children:
        child.start()
    assert sorted(results.get() for _ in range(300)) == sorted(
        (n, i) for n in range(3) for i in range(100)
    )
    for child in children:
        child.join()
        assert child.exitcode == 0
    q.put("for the parent")
    assert getting.result() == "for the parent"


def test_the_death_of_a_forked_parent_frees_its_place_in_line(valkey, name):
    """A child that inherited the parent's socket must not keep the connection alive."""
    q = Queue(name=name, url=valkey.url)
    client = valkey.client()
    before = blocked(client)
    ours, theirs = multiprocessing.Pipe()
    parent = multiprocessing.get_context("spawn").Process(
        target=targets.get_and_fork, args=(q, theirs)
    )
    parent.start()
    until(lambda: blocked(client) == before + 1)
    ours.send("fork")
    child = ours.recv()
    parent.kill()
    parent.join()
    until(lambda: blocked(client) == before)
    ours.send("end")
    until(lambda: not targets.is_alive(child))
    client.close()


def test_a_server_that_went_and_came_back_serves_the_next_operation(name):
    server = Server("valkey")
    try:
        q = Queue(name=name, url=server.start().url, reconnect=0.2)
        q.put(1)
        server.kill()
        with pytest.raises(pressure_mp.BrokerUnavailable):
            q.qsize()
        server.start()
        assert not q.exists()
    finally:
        server.stop()


def test_the_end_of_the_server_reaches_waiting_gets(name):
    server = Server("valkey")
    try:
        q = Queue(name=name, url=server.start().url, reconnect=0)
        client = server.client()
        waiting = [Background(q.get) for _ in range(3)]
        until(lambda: blocked(client) == 3)
        client.close()
        server.kill()
        for get in waiting:
            with pytest.raises(pressure_mp.BrokerUnavailable):
                get.result()
    finally:
        server.stop()


@pytest.fixture
def held(valkey, name):
    """A process that waits with a role, and someone in line behind it: start(operation, lease)."""
    client = valkey.client()
    before = blocked(client)
    started = []

    def start(operation, lease):
        q = Queue(1, name, url=valkey.url, lease=lease)
        if operation == "put":
            q.put("full")
        context = multiprocessing.get_context("spawn")
        holder = context.Process(target=targets.wait_forever, args=(q, operation))
        holder.start()
        started.append(holder)
        until(lambda: blocked(client) == before + 1)
        in_line = Background(q.get) if operation == "get" else Background(q.put, "in line")
        until(lambda: blocked(client) == before + 2)
        return q, holder, in_line

    yield start
    for process in started:
        process.kill()
        process.join()
    client.close()


def serve(q, operation):
    """Do what both of them wait for, once."""
    if operation == "get":
        q.put("for the next")
    else:
        assert q.get_nowait() == "full"


@pytest.mark.parametrize("operation", ["get", "put"])
def test_a_killed_holder_of_a_role_on_this_host_delays_the_next_by_a_second(held, operation):
    q, holder, in_line = held(operation, lease=HOURS)
    holder.kill()
    holder.join()
    serve(q, operation)
    in_line.result()
    q.delete()


@pytest.mark.parametrize("operation", ["get", "put"])
def test_a_stopped_holder_of_a_role_delays_the_next_by_its_lease(held, operation):
    q, holder, in_line = held(operation, lease=1)
    os.kill(holder.pid, signal.SIGSTOP)
    serve(q, operation)
    in_line.result()
    # It wakes up without its role, and stands in line again.
    os.kill(holder.pid, signal.SIGCONT)
    if operation == "get":
        q.put("for the one that was stopped")
        until(lambda: not holder.is_alive())
    else:
        assert q.get() == "in line"
        assert q.get() == "forever"
    assert q.empty()
    q.delete()


def test_unlock_names_the_client_that_had_the_role_and_the_next_one_gets_it(held, valkey):
    q, holder, in_line = held("get", lease=HOURS)
    os.kill(holder.pid, signal.SIGSTOP)
    queue = PressureQueue(q.name, url=valkey.url)
    assert f":{holder.pid}:" in queue.unlock("consumer")
    q.put("for the next")
    assert in_line.result() == "for the next"
    assert queue.unlock("consumer") is None
    q.delete()


def test_unlock_frees_what_another_implementation_died_on(server, name):
    client = server.client()
    queue = PressureQueue(name, url=server.url)
    queue.create(2)
    base = f"__pressure__:{name}"
    client.rpop(f"{base}:producer_free")  # as the reference's Put begins, and then dies
    client.set(f"{base}:producer", "theirs")
    client.rpop(f"{base}:not_full")
    putting = Background(queue.put, b"x")
    with pytest.raises(pressure_mp.ProducerInUseError):
        queue.put_nowait(b"y")
    assert queue.unlock("producer") == "theirs"
    putting.result()
    assert queue.get_nowait() == b"x"
    with pytest.raises(pressure_mp.ArgumentError, match="'reader'"):
        queue.unlock("reader")
    queue.delete()
    with pytest.raises(pressure_mp.QueueDoesNotExistError):
        queue.unlock("consumer")
    client.close()


def test_threads_of_one_process_are_told_apart(valkey, name):
    q = Queue(name=name, url=valkey.url)
    other = Background(lambda: (q.put(1), q.client_id)[1]).result()
    assert other != q.client_id
    assert q.stats().producer == other
    host, pid, thread, incarnation = other.rsplit(":", 3)
    assert int(pid) == os.getpid()
    assert int(thread) != threading.get_native_id()
    assert host
    assert len(incarnation.rpartition("-")[2]) == 8
    q.delete()


def test_a_killed_holder_of_a_role_does_not_delay_a_delete(valkey, name):
    q = Queue(name=name, url=valkey.url, lease=HOURS)
    client = valkey.client()
    holder = multiprocessing.get_context("spawn").Process(
        target=targets.wait_forever, args=(q, "get")
    )
    before = blocked(client)
    holder.start()
    until(lambda: blocked(client) == before + 1)
    holder.kill()
    holder.join()
    q.delete(timeout=LIMIT)
    assert lasting(client, f"*{name}*") == []
    client.close()


def test_a_task_that_is_cancelled_while_it_logs_in_is_cancelled(debian_redis, monkeypatch):
    greeted = []  # then it is logged in, and a cancellation waits for the reply
    greet = LoopWire._greet
    monkeypatch.setattr(LoopWire, "_greet", lambda *args: greeted.append(1) or greet(*args))
    address = registry.resolve(rights.url(debian_redis))

    async def cancel_at_every_step():
        for turns in range(12):
            opening = asyncio.ensure_future(LoopWire.open(address))
            for _ in range(turns):
                await asyncio.sleep(0)
            if greeted:  # so many turns were enough: they may be long ones
                (await opening).close()
                break
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert turns

    asyncio.run(cancel_at_every_step())


@pytest.mark.parametrize("used", [True, False], ids=["used", "dropped"])
def test_a_connection_whose_number_is_a_file_of_the_program_leaves_it_alone(
    server, name, tmp_path, used
):
    with Queue(name=name, url=server.url, prefix=name) as q, open(tmp_path / "own", "w+b") as own:
        q.put(1)
        (wire,) = inside.engine(q).thread_pool._all
        number = wire._socket.fileno()
        del wire
        os.dup2(own.fileno(), number)
        if used:
            q.put(2)
            assert q.get_many(2) == [1, 2]
        else:
            inside.engine(q).close()
        gc.collect()
        assert os.path.getsize(own.name) == 0
        assert os.path.samestat(os.fstat(number), os.fstat(own.fileno()))
        os.close(number)
        q.delete()
