"""A server whose messages are not English: the errors say all the same what to do."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import psycopg
import pytest
from brokers import postgres as servers
from waiting import Background, parks, until

from pressure_mp import Queue
from pressure_mp.engines import registry
from pressure_mp.engines.postgres.errors import NotInstalled, refusal, unreachable
from pressure_mp.exceptions import BrokerError, BrokerUnavailable, WrongServerError

LANGUAGE = "de_DE.UTF-8"
CONNECTIONS = ("max_connections=6", "superuser_reserved_connections=2")


@pytest.fixture(scope="module")
def german():
    """A server that speaks German, and has few connections. Skipped where its language is not."""
    if not servers.Postgres.is_there() or shutil.which("localedef") is None:
        pytest.skip("PostgreSQL or localedef is not installed")
    server = servers.Postgres(f"lc_messages={LANGUAGE}", *CONNECTIONS)
    place = server.directory / "locales"
    place.mkdir()
    making = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(place / LANGUAGE)]
    try:
        if subprocess.run(making, capture_output=True, check=False).returncode:
            pytest.skip("there is nothing to make a German locale of")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOCPATH", str(place))
            place.chmod(0o755)
            server.start()
        server.prepare()
        try:
            server.execute("SELECT * FROM nothing")
        except psycopg.Error as error:
            if "existiert nicht" not in str(error):
                pytest.skip("PostgreSQL has no German messages")
        yield server
    finally:
        server.stop()


def test_the_first_use_without_a_schema_says_what_to_run(german, name):
    with pytest.raises(BrokerError, match=r"no schema nowhere.*postgres install"):
        Queue(name=name, url=f"{german.url}?schema=nowhere").open()


def test_the_first_use_installs_the_schema(german, name):
    q = Queue(name=name, url=f"{german.url}?schema=made&create=1")
    q.put(1)
    assert q.get() == 1


def test_a_waiting_get_is_told_that_the_schema_was_dropped(german, name):
    url = f"{german.url}?schema=short&create=1"
    q = Queue(name=name, url=url)
    waiting = Background(q.get)
    until(lambda: parks(waiting))
    german.execute("DROP SCHEMA short CASCADE")
    with pytest.raises(BrokerError, match="no schema short"):
        waiting.result()
    registry.engine(registry.parse(url)).close()


def test_a_server_without_a_free_connection_is_waited_for(german, name):
    url = f"{german.limited_url}?application_name={name}"  # no other test has its connections
    with contextlib.ExitStack() as others:

        def waiting():
            """A call that waits. A connection of an earlier test may end just before it."""
            until(lambda: servers.is_refused(url, others))
            asking = Background(lambda: Queue(name=name, url=url, reconnect=3600).qsize())
            asking.join(0.3)
            if asking.is_alive():
                return asking
            registry.engine(registry.parse(url)).close()  # the next call would use its connection
            return None

        asking = until(waiting)
    assert asking.result() == 0
    registry.engine(registry.parse(url)).close()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("3F000", "Schema »queues« existiert nicht"),
        ("42P01", "la relation « queues.items » n'existe pas"),
        ("42883", "функция queues.version() не существует"),
    ],
)
def test_a_missing_schema_is_known_by_the_state_of_the_error(state, message):
    assert isinstance(refusal(state, message, "here", "queues"), NotInstalled)


@pytest.mark.parametrize(
    ("message", "is_certain"),
    [
        ("FATAL:  sorry, too many clients already", False),
        ("FATAL:  tut mir leid, schon zu viele Verbindungen", False),
        ("ВАЖНО:  система баз данных запускается", False),
        ('FATAL:  password authentication failed for user "x"', True),
        ('FATAL:  database "x" does not exist', True),
        ('FATAL:  role "x" is not permitted to log in', True),
        # The first of two hosts may be there soon.
        ('FATAL:  the database system is starting up\nFATAL:  role "x" does not exist', False),
    ],
)
def test_only_what_will_certainly_be_the_same_is_not_tried_again(message, is_certain):
    found = unreachable(f"connection to server failed: {message}\n", "here")
    assert isinstance(found, WrongServerError) == is_certain
    assert isinstance(found, BrokerUnavailable)
