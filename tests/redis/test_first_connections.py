"""First connections: to a broker that is not there yet, and to a server that is no broker."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

import engines
import inside
import pytest
import redis
import started
import trustme
from brokers.servers import Server
from engines import Can
from opened import opened
from ports import free_port
from waiting import Background, until

import pressure_mp
from pressure_mp import (
    BrokerError,
    BrokerUnavailable,
    JoinableQueue,
    LifoQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
    TaskQueue,
    UnsupportedServerError,
    WrongServerError,
)
from pressure_mp.drivers import adrive
from pressure_mp.engines import registry
from pressure_mp.engines.contract.queues import How
from pressure_mp.engines.redis import connecting

#: Seconds that no test here may last: a call that gives up at once does not wait for so long.
PATIENT = 3600


@pytest.fixture
def later():
    """A server that is not started yet, on a port of its own."""
    server = Server("valkey", port=free_port())
    yield server
    server.stop()


@contextlib.contextmanager
def told(caplog):
    """Wait at the end of the block until the log says that a call waits for a broker."""
    caplog.set_level(logging.WARNING, "pressure_mp")
    yield
    until(lambda: "to reach the broker" in caplog.text)


@pytest.mark.parametrize("kind", [PressureQueue, Queue, TaskQueue])
def test_a_server_that_is_started_later_is_waited_for(later, name, caplog, kind):
    q = kind(name=name, url=later.url, reconnect=PATIENT)
    opening = Background(q.create, 3) if kind is PressureQueue else Background(q.open)
    with told(caplog):
        pass
    # Threads of other tests may wait for their servers too.
    here = f"redis://127.0.0.1:{later.port}"
    (record,) = [record for record in caplog.records if here in record.message]
    assert record.name == "pressure_mp"
    assert " 35" in record.message, "for how long"
    later.start()
    opening.result(60)
    assert PressureQueue(name, url=later.url).exists() or kind is TaskQueue


def test_an_anonymous_queue_waits_for_its_server_too(later, caplog):
    making = Background(Queue, url=later.url, reconnect=PATIENT)
    with told(caplog):
        pass
    later.start()
    with making.result(60) as q:
        q.put(1)
        assert q.get() == 1


def test_a_task_of_asyncio_waits_for_its_server_too(later, name, caplog):
    q = PressureQueue(name, url=later.url, reconnect=PATIENT)
    binding = inside.bind(q)

    async def create():
        await adrive(inside.operations(q).open(How.CREATE, 1), binding.asession())

    making = Background(asyncio.run, create())
    with told(caplog):
        pass
    later.start()
    making.result(60)
    assert q.exists()


def test_a_unix_socket_that_is_made_later_is_waited_for(later, name, caplog):
    making = Background(opened, Queue(name=name, url=later.unix_url, reconnect=PATIENT))
    with told(caplog):
        pass
    later.start()
    making.result(60).delete()


@pytest.mark.parametrize("kind", engines.kinds(Can.PROTOCOL))
@pytest.mark.parametrize("password", ["", ":secret@"])
def test_a_server_with_too_many_clients_is_waited_for(name, kind, password, caplog):
    secret = ("--requirepass", "secret") if password else ()
    server = Server(kind, ("--maxclients", "4", *secret)).start()
    try:
        url = server.url.replace("//", f"//{password}")
        others = []
        while len(others) < 4:
            others.append(socket.create_connection(("127.0.0.1", server.port)))
        with pytest.raises(BrokerUnavailable):
            Queue(name=name, url=url, reconnect=0).open()
        making = Background(opened, Queue(name=name, url=url, reconnect=PATIENT))
        with told(caplog):
            pass
        for other in others:
            other.close()
        making.result(60).delete()
    finally:
        server.stop()


def test_a_failure_that_lasts_less_than_a_second_is_not_logged(later, name, caplog):
    later.start()
    q = Queue(name=name, url=later.url)
    with later.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    q.put(1)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "kind", [Queue, JoinableQueue, LifoQueue, PriorityQueue, SimpleQueue, TaskQueue]
)
def test_a_handle_with_a_name_is_made_without_its_server_and_opened_by_its_first_call(
    kind, later, name
):
    q = kind(name=name, url=later.url, reconnect=0)
    for _ in range(2):
        with pytest.raises(BrokerUnavailable, match="no broker answers"):
            q.put(1)
    later.start()
    q.put(1)
    assert (q.take().data if kind is TaskQueue else q.get()) == 1
    q.delete()


#: A program of its own: here other tests have left threads, which a fork takes no part of.
STARTS = """
import multiprocessing, sys
from pressure_mp import Queue
url, name, method = sys.argv[1:]
q = Queue(name=name, url=url)
child = multiprocessing.get_context(method).Process(target=q.put, args=(method,))
child.start()
assert q.get(timeout=60) == method
child.join()
q.delete()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_handle_that_was_not_opened_is_opened_in_a_process_that_is_started(method, valkey, name):
    command = [sys.executable, "-c", STARTS, valkey.url, name, method]
    subprocess.run(command, env=started.environment(), check=True, timeout=100)


def test_threads_that_open_a_handle_at_the_same_time_open_one_queue(valkey, name):
    q = TaskQueue(name, url=valkey.url)
    together = threading.Barrier(8)

    def put(number):
        together.wait()
        return q.put(number)

    puts = [Background(put, number) for number in range(8)]
    assert len({one.result(60) for one in puts}) == 8
    assert q.qsize() == 8
    q.delete()


def test_the_time_for_a_broker_that_is_not_there_has_a_limit(name):
    url = f"redis://127.0.0.1:{free_port()}"
    begin = time.monotonic()
    with pytest.raises(BrokerUnavailable, match="no broker answers at redis://127"):
        Queue(name=name, url=url, reconnect=0.5).open()
    assert time.monotonic() - begin >= 0.5


def test_no_broker_at_the_default_address_says_where_that_is_from_and_what_to_do():
    refused = ConnectionRefusedError("refused.")
    for environ, origin in (({}, "the default address"), ({"REDIS_DB": "1"}, "from REDIS_DB")):
        address = registry.resolve(environ=environ)
        text = str(connecting.unavailable(address, refused))
        assert text.startswith(f"no broker answers at {address.url} ({origin}): refused. Start ")
        assert "PRESSURE_URL=embedded://" in text
    elsewhere = registry.resolve("redis://elsewhere", environ={})
    text = "no broker answers at redis://elsewhere:6379/0 (from the argument url): refused"
    assert str(connecting.unavailable(elsewhere, refused)) == text


def test_a_server_that_went_away_is_not_tried_again_without_time_by_any_step(later, name, caplog):
    later.start()
    Queue(name=name, url=later.url).open()
    later.stop()
    with pytest.raises(BrokerUnavailable):
        Queue(name=name, url=later.url, reconnect=0).open()
    assert caplog.text == ""  # which is told after a second


@pytest.mark.parametrize("anonymous", [False, True])
def test_without_time_the_first_failure_is_raised(name, anonymous, caplog):
    url = f"redis://127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnavailable):
        Queue(name=None if anonymous else name, url=url, reconnect=0).open()
    assert url not in caplog.text


def test_a_broker_that_could_not_be_swept_is_swept_by_the_next_call(later, name):
    """The first call to a broker looks for keys that killed processes left there."""
    with pytest.raises(BrokerUnavailable):
        Queue(name=name, url=later.url, reconnect=0).open()
    later.start()
    with later.client() as client:
        client.config_resetstat()
        Queue(name=name, url=later.url).put(1)
        assert client.info("commandstats")["cmdstat_smembers"]["calls"] == 1


@pytest.mark.parametrize("reconnect", [0, PATIENT])
def test_a_host_that_has_no_name_is_said_so(name, reconnect):
    if reconnect:
        q = Queue(name=name, url="redis://no-such-host.invalid", reconnect=0.2)
        with pytest.raises(BrokerUnavailable, match=r"no-such-host\.invalid"):
            Background(q.open).result(60)
    else:
        with pytest.raises(BrokerUnavailable, match=r"no-such-host\.invalid"):
            Queue(name=name, url="redis://no-such-host.invalid", reconnect=reconnect).open()


def test_a_script_that_is_flushed_again_and_again_is_called_in_the_end(own_server, name):
    q = Queue(name=name, url=own_server.url, reconnect=PATIENT)
    stop = threading.Event()

    def flush():
        with own_server.client() as client:
            pipeline = client.pipeline(transaction=False)
            while not stop.is_set():
                for _ in range(50):
                    pipeline.script_flush()
                pipeline.execute()

    flushing = Background(flush)
    try:
        for number in range(100):
            q.put(number)
            assert q.get() == number
    finally:
        stop.set()
    flushing.result(60)


def test_a_server_that_loads_no_script_is_named_with_that(name):
    server = Server("redis", ("--rename-command", "SCRIPT", "")).start()
    try:
        with pytest.raises(BrokerError, match=f":{server.port}/0 refuses SCRIPT LOAD.*unknown"):
            Queue(name=name, url=server.url, reconnect=PATIENT).open()
    finally:
        server.stop()


# Servers that are no broker


@contextlib.contextmanager
def speaking(say):
    """A port on which each connection is served by ``say(connection)``."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        say(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def banner(text):
    def say(connection):
        connection.sendall(text)
        connection.recv(1000)

    return say


GREETINGS = {
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "smtp": b"220 mail.example ESMTP\r\n",
    "pop3": b"+OK POP3 ready\r\n",
    "numbers": b":7\r\n",
    "list": b"*1\r\n$1\r\nx\r\n",
    "memcached": b"ERROR\r\n",
}


def _open(name, url):
    """Another test of this process may have met a broker at that port, which would be waited for:
    it is told apart by its prefix."""
    Queue(name=name, url=url, prefix=name, reconnect=PATIENT).open()


@pytest.mark.parametrize("login", ["", ":secret@"])
@pytest.mark.parametrize("greeting", GREETINGS)
def test_a_port_that_speaks_something_else_is_named_at_once(name, greeting, login):
    with speaking(banner(GREETINGS[greeting])) as port:
        # To redis-py some of these are a refusal of the login.
        with pytest.raises((BrokerError, WrongServerError)) as caught:
            _open(name, f"redis://{login}127.0.0.1:{port}")
        assert f"redis://127.0.0.1:{port}/0" in str(caught.value)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("login", ["", ":secret@"])
def test_a_web_server_is_no_broker(name, login):
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as web:
        web.RequestHandlerClass.log_message = lambda *args: None
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"redis://{login}127.0.0.1:{web.server_port}"
        with pytest.raises(WrongServerError, match=f":{web.server_port}/0: .*no.* reply|rotocol"):
            _open(name, url)
        web.shutdown()


def test_a_port_that_says_nothing_is_named_with_that(name):
    with speaking(lambda connection: connection.recv(1) and time.sleep(5)) as port:
        url = f"redis://127.0.0.1:{port}?socket_connect_timeout=0.1"
        with pytest.raises(BrokerUnavailable, match=rf":{port}/0.*does not answer for 0\.1 s"):
            Queue(name=name, url=url, reconnect=0).open()


def test_a_port_that_hangs_up_is_named_with_that(name):
    with (
        speaking(lambda connection: connection.recv(1000)) as port,
        pytest.raises(BrokerUnavailable, match=rf":{port}/0.*not answer the first command.*close"),
    ):
        Queue(name=name, url=f"redis://127.0.0.1:{port}", reconnect=0).open()


def test_a_port_that_does_not_speak_tls_is_named_with_that(name):
    with speaking(banner(GREETINGS["smtp"])) as port:
        url = f"rediss://127.0.0.1:{port}"
        with pytest.raises(WrongServerError, match=rf":{port}/0: .*does not speak TLS.*redis://"):
            _open(name, url)


def test_a_server_without_tls_is_named_with_that(server, name):
    """It waits for the end of what it takes for a command."""
    url = f"rediss://127.0.0.1:{server.port}?socket_connect_timeout=0.2"
    with pytest.raises(BrokerUnavailable, match=rf":{server.port}/0.*TLS.*redis://"):
        Queue(name=name, url=url, reconnect=0).open()


def test_a_port_that_speaks_tls_only_is_named_with_that(name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

    def say(connection):
        with context.wrap_socket(connection, server_side=True):
            pass

    with (
        speaking(say) as port,
        pytest.raises(BrokerUnavailable, match=f":{port}/0"),
    ):
        Queue(name=name, url=f"redis://127.0.0.1:{port}", reconnect=0).open()


@pytest.mark.parametrize("rights", ["", "-info"])
def test_a_server_whose_hello_was_renamed_is_named_with_that(name, rights):
    server = Server("redis", ("--rename-command", "HELLO", "HI")).start()
    try:
        if rights:
            with redis.Redis(port=server.port, protocol=2) as client:
                client.execute_command("ACL", "SETUSER", "default", rights)
        with pytest.raises(UnsupportedServerError, match="no command HELLO: it is renamed") as told:
            Queue(name=name, url=server.url, reconnect=PATIENT).open()
        assert server.url in str(told.value)
        assert ("older than 6.0" in str(told.value)) == bool(rights)
    finally:
        server.stop()


def test_a_wrong_password_is_refused_at_once(name):
    server = Server("valkey", ("--requirepass", "right")).start()
    try:
        with pytest.raises(BrokerError, match="refuses the login"):
            Queue(name=name, url=server.url.replace("//", "//:wrong@"), reconnect=PATIENT).open()
        with pytest.raises(BrokerError, match="NOAUTH"):
            Queue(name=name, url=server.url, reconnect=PATIENT).open()
    finally:
        server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_socket_that_this_user_may_not_open_is_named_at_once(valkey, name):
    os.chmod(valkey.directory, 0o700)
    before = os.geteuid()

    def make():
        os.seteuid(65534)
        try:
            # Of a prefix that has no connection yet.
            Queue(name=name, url=valkey.unix_url, prefix=name, reconnect=PATIENT).open()
        finally:
            os.seteuid(before)

    with pytest.raises(WrongServerError, match="may not connect there"):
        make()


@pytest.mark.parametrize("cause", [PermissionError, ssl.SSLCertVerificationError])
def test_an_error_that_the_caller_is_handling_is_not_taken_for_the_cause(name, cause):
    try:
        raise cause("of the caller's own")
    except cause:
        with pytest.raises(BrokerUnavailable, match="no broker answers") as caught:
            Queue(name=name, url=f"redis://127.0.0.1:{free_port()}", reconnect=0).open()
        assert type(caught.value) is BrokerUnavailable
        with speaking(lambda connection: None) as port:
            with pytest.raises(BrokerUnavailable, match="no broker answers") as caught:
                Queue(name=name, url=f"redis://:secret@127.0.0.1:{port}", reconnect=0).open()
            assert type(caught.value) is BrokerUnavailable


def test_an_own_certificate_that_is_not_there_is_named_at_once(name, valkey):
    url = valkey.url.replace("redis:", "rediss:") + "?ssl_ca_certs=/nowhere/ca.pem"
    with pytest.raises(pressure_mp.PressureError, match=r"ca\.pem"):
        Queue(name=name, url=url, reconnect=0).open()
