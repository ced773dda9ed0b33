"""The schema is installed, brought up to date, and removed; few rights suffice to use it."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
from brokers.postgres import ROLE
from waiting import Background

from pressure_mp import Queue, TaskQueue, exceptions
from pressure_mp.drivers import drive
from pressure_mp.engines import registry
from pressure_mp.engines.postgres.schema import grant_sql
from pressure_mp.operations.brokers import identify, list_page

installing = pytest.importorskip("pressure_mp.engines.postgres.installing")

THREADS = """
import sys
from pressure_mp import Queue
Queue(name="jobs", url=sys.argv[1]).open()
"""
ASYNCIO = """
import asyncio, sys
from pressure_mp.aio import Queue
async def main():
    await Queue(name="jobs", url=sys.argv[1]).put("item")
asyncio.run(main())
"""


@pytest.fixture
def schema(postgres):
    """The name of a schema that no other test has, removed in the end."""
    from secrets import token_hex

    name = f"own_{token_hex(4)}"
    yield name
    postgres.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def run(*arguments, status=0):
    command = [sys.executable, "-c", "from pressure_mp.cli import main; main()", "postgres"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_the_first_use_without_it_says_what_to_run(postgres, schema, name):
    with pytest.raises(exceptions.BrokerError, match=r"no schema own_.*postgres install"):
        Queue(name=name, url=f"{postgres.url}?schema={schema}").open()


@pytest.mark.parametrize("program", [THREADS, ASYNCIO])
def test_a_program_that_ends_without_it_shows_that_and_not_how_the_package_asked(
    postgres, schema, program
):
    url = f"{postgres.url}?schema={schema}"
    command = [sys.executable, "-c", program, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    *calls, error = done.stderr.splitlines()
    assert "postgres install" in error
    assert not any("pressure_mp/engines" in line for line in calls), done.stderr
    assert done.stderr.count("Traceback") == 1


def test_create_in_the_url_installs_it(postgres, schema, name):
    q = Queue(name=name, url=f"{postgres.url}?schema={schema}&create=1")
    q.put(1)
    assert Queue(name=name, url=f"{postgres.url}?schema={schema}").get() == 1


def test_schemas_of_one_database_are_apart(postgres, schema, name):
    other = Queue(name=name, url=f"{postgres.url}?schema={schema}&create=1")
    q = Queue(name=name, url=postgres.url)
    q.put("here")
    assert other.empty()
    assert q.get() == "here"


def test_to_install_it_again_changes_nothing_and_an_upgrade_disturbs_no_client(
    postgres, schema, name
):
    url = f"{postgres.url}?schema={schema}"
    run("install", "--url", url)
    q = Queue(name=name, url=url)
    q.put(1)
    run("install", "--url", url)
    run("upgrade", "--url", url)
    q.put(2)
    assert [q.get(), q.get()] == [1, 2]
    run("uninstall", "--url", url, "--yes")
    with pytest.raises(exceptions.BrokerError, match="install"):
        q.put(3)
    run("install", "--url", url)
    with pytest.raises(exceptions.QueueDoesNotExistError):
        q.put(3)


def test_clients_go_on_while_it_is_upgraded_several_times_at_once(postgres, schema, name):
    address = registry.parse(f"{postgres.url}?schema={schema}")
    installing.install(address)
    postgres.execute(grant_sql(ROLE, schema))
    q = Queue(name=name, url=f"{postgres.limited_url}?schema={schema}")
    over = threading.Event()

    def put_and_get():
        number = 0
        while not over.is_set() or number < 10:
            q.put(number)
            assert q.get() == number
            number += 1

    working = Background(put_and_get)
    upgrading = [
        Background(lambda upgrade=upgrade: [upgrade(address) for _ in range(3)])
        for upgrade in (installing.upgrade, installing.upgrade, installing.install)
    ]
    try:
        for one in upgrading:
            one.result()
    finally:
        over.set()
    working.result()


def test_a_role_that_may_use_it_may_use_it_after_an_upgrade_that_brings_functions(
    postgres, schema, name
):
    address = registry.parse(f"{postgres.url}?schema={schema}")
    installing.install(address)
    postgres.execute(grant_sql(ROLE, schema))
    calls = "call(text, text, text, text, text, bigint, text, boolean, bigint, text, bigint,"
    calls += " boolean, text, jsonb, bytea[], bytea[])"
    postgres.execute(f"DROP FUNCTION {schema}.{calls}")  # as if it had not been there before
    installing.upgrade(address)
    q = Queue(name=name, url=f"{postgres.limited_url}?schema={schema}")
    q.put(1)
    assert q.get() == 1


def test_a_newer_one_is_not_made_older(postgres, schema):
    address = registry.parse(f"{postgres.url}?schema={schema}")
    installing.install(address)
    version = f"{schema}.version() RETURNS integer LANGUAGE sql"
    postgres.execute(f"CREATE OR REPLACE FUNCTION {version} AS 'SELECT 99'")
    for change in (installing.install, installing.upgrade, installing.uninstall):
        with pytest.raises(exceptions.BrokerError, match=r"is of version 99.*nothing was done"):
            change(address)
    assert postgres.execute(f"SELECT {schema}.version()") == [(99,)]


def test_a_role_that_may_not_install_or_upgrade_it_is_told_which_role_may(postgres, schema, name):
    url = f"{postgres.limited_url}?schema={schema}"
    with pytest.raises(exceptions.BrokerError, match="by a role that may create schemas"):
        Queue(name=name, url=f"{url}&create=1").open()
    installing.install(registry.parse(f"{postgres.url}?schema={schema}"))
    postgres.execute(grant_sql(ROLE, schema))
    with pytest.raises(exceptions.BrokerError, match="by its owner"):
        installing.upgrade(registry.parse(url))


def test_another_version_of_it_is_an_error_that_says_so(postgres, schema, name):
    url = f"{postgres.url}?schema={schema}"
    run("install", "--url", url)
    for number, advice in ((0, "postgres upgrade"), (99, "use the package that installed it")):
        for function in ("version", "serves"):
            made = f"{schema}.{function}() RETURNS integer LANGUAGE sql AS 'SELECT {number}'"
            postgres.execute(f"CREATE OR REPLACE FUNCTION {made}")
        address = registry.parse(url, prefix=f"apart-{number}")
        with pytest.raises(exceptions.BrokerError, match=f"is of version {number}.*{advice}"):
            drive(list_page(), registry.engine(address).broker().session())


def test_the_output_of_sql_and_grant_installs_a_schema_that_can_be_used(postgres, schema, name):
    postgres.execute(run("sql", "--schema", schema))
    postgres.execute(run("grant", ROLE, "--schema", schema))
    q = Queue(name=name, url=f"{postgres.limited_url}?schema={schema}")
    q.put(1)
    assert q.get() == 1


@pytest.mark.parametrize("schema", ["user", "order", "all"])
def test_a_schema_may_be_called_by_a_word_of_sql(postgres, schema):
    url = f"{postgres.url}?schema={schema}"
    limited = f"{postgres.limited_url}?schema={schema}"
    run("install", "--url", url)
    postgres.execute(run("grant", ROLE, "--schema", schema))
    run("upgrade", "--url", url)
    q, tasks = Queue(name="jobs", url=limited), TaskQueue("tasks", url=limited)
    q.put("item")
    with pytest.importorskip("psycopg").connect(postgres.limited_url) as connection:
        tasks.put("task", connection=connection)
    assert q.get() == "item"
    with tasks.take() as task:
        assert task.data == "task"
    assert drive(identify(), registry.engine(registry.parse(limited)).broker().session())
    run("uninstall", "--url", url, "--yes")


def test_a_url_of_no_database_and_a_wrong_name_of_a_schema_are_wrong_usage():
    assert "redis://localhost:6379/0 is not a PostgreSQL database" in run(
        "install", "--url", "redis://localhost:6379", status=2
    )
    assert "lower case" in run("sql", "--schema", "Own", status=2)


def test_a_role_that_may_not_use_it_is_told_what_it_lacks(postgres, schema, name):
    run("install", "--url", postgres.url, "--schema", schema)
    with pytest.raises(exceptions.BrokerError, match="grant this role"):
        Queue(name=name, url=f"{postgres.limited_url}?schema={schema}").open()


def test_the_role_of_the_other_tests_may_not_read_the_tables(postgres):
    import psycopg

    with (
        psycopg.connect(postgres.limited_url) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT * FROM pressure_mp.items")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://host/db?schema=Own", "lower case"),
        *((f"postgresql://host/db?schema={name}", "public") for name in ("public", "pg_own")),
        ("postgresql://host/db?create=yes", "1, or 0"),
        ("postgresql://host/one/two", "more than a database"),
        ("postgresql://user:p/w@host/db", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_meant_is_an_error(url, problem):
    with pytest.raises(exceptions.AddressError, match=problem):
        registry.parse(url)


@pytest.mark.parametrize(
    "made",
    [
        "FUNCTION {}.theirs() RETURNS text LANGUAGE sql AS $$SELECT ''$$",
        "TABLE {}.queues (id integer, title text)",
        'COLLATION {}.theirs FROM "C"',
        "TEXT SEARCH CONFIGURATION {}.theirs (COPY = simple)",
    ],
)
def test_a_schema_that_others_use_is_neither_filled_nor_changed_nor_removed(postgres, schema, made):
    address = registry.parse(f"{postgres.url}?schema={schema}")
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"CREATE {made.format(schema)}")
    before = contents(postgres, schema)
    problem = rf"other things.*{schema}\..*nothing was done"
    with pytest.raises(exceptions.BrokerError, match=problem):
        installing.install(address)
    for change in (installing.upgrade, installing.uninstall):
        with pytest.raises(exceptions.BrokerError, match=r"no schema own_.*nothing was done"):
            change(address)
    assert contents(postgres, schema) == before


def contents(server, schema):
    """What depends on a schema, apart from what would go with something else."""
    return server.execute(
        "SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass "
        f"AND refobjid = '{schema}'::regnamespace ORDER BY 1, 2"
    )


@pytest.mark.parametrize("made", ["TABLE {}.theirs (x integer)", "DOMAIN {}.theirs AS integer"])
def test_a_schema_with_queues_and_with_something_of_others_is_not_removed(postgres, schema, made):
    url = f"{postgres.url}?schema={schema}"
    run("install", "--url", url)
    postgres.execute(f"CREATE {made.format(schema)}")
    before = contents(postgres, schema)
    told = run("uninstall", "--url", url, "--yes", status=1)
    assert "other things than queues" in told
    assert f"{schema}.theirs" in told
    assert contents(postgres, schema) == before
    postgres.execute(f"DROP {made.split()[0]} {schema}.theirs")
    run("uninstall", "--url", url, "--yes")


def test_a_schema_on_which_something_elsewhere_depends_is_not_removed(postgres, schema):
    address = registry.parse(f"{postgres.url}?schema={schema}")
    installing.install(address)
    postgres.execute(f"CREATE VIEW public.{schema} AS SELECT * FROM {schema}.queues")
    try:
        before = contents(postgres, schema)
        with pytest.raises(exceptions.BrokerError, match=f"view public.{schema} depends on"):
            installing.uninstall(address)
        assert contents(postgres, schema) == before
    finally:
        postgres.execute(f"DROP VIEW public.{schema}")
    installing.uninstall(address)
    assert postgres.execute(f"SELECT to_regnamespace('{schema}')") == [(None,)]


def test_to_remove_a_schema_that_is_not_there_is_an_error(postgres, schema):
    told = run("uninstall", "--url", postgres.url, "--schema", schema, "--yes", status=1)
    assert f"has no schema {schema}" in told


def test_names_with_zero_characters_are_refused(postgres, name):
    with pytest.raises(exceptions.ArgumentError, match="zero character"):
        Queue(name=f"{name}\0", url=postgres.url).open()
    with pytest.raises(exceptions.AddressError, match="zero character"):
        registry.parse(postgres.url, prefix="a\0b")


def test_an_option_that_libpq_does_not_know_is_an_error(postgres, name):
    with pytest.raises(exceptions.AddressError, match="colour"):
        Queue(name=name, url=f"{postgres.url}?colour=blue").open()


def test_a_url_shows_no_password():
    address = registry.parse("postgresql://user:secret@host/db?sslpassword=secret&schema=own")
    assert address.url == "postgresql://user@host/db?schema=own"
    assert "secret" not in repr(address)


@pytest.fixture
def owner(postgres, schema):
    """A role that may create no schema, and owns an empty one; both have the same name."""
    postgres.execute(f"CREATE ROLE {schema} LOGIN")
    postgres.execute(f"CREATE SCHEMA {schema} AUTHORIZATION {schema}")
    yield schema
    postgres.execute(f"DROP OWNED BY {schema} CASCADE")
    postgres.execute(f"DROP ROLE {schema}")


def test_an_empty_schema_that_an_administrator_made_is_filled_by_its_owner(postgres, owner):
    url = f"{postgres.url.replace('postgres@', f'{owner}@')}?schema={owner}"
    run("install", "--url", url)
    q = Queue(name="jobs", url=url)
    q.put("item")
    assert q.get() == "item"
    run("uninstall", "--url", url, "--yes")
