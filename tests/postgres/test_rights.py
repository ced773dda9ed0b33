"""A role that may use the queues may do nothing else: what runs as the schema's owner is what the
owner wrote."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest

from pressure_mp.engines.postgres.schema import ENTRIES

#: Types that the functions could mean by these names, were they not told which ones they mean.
TYPES = ("text", "bytea", "jsonb", "tid", "int8", "int4", "bool", "name", "oid", "xid8")


@pytest.fixture
def hostile(postgres):
    """A connection of that role; in its temporary schema, which is found first, are types whose
    checks tell which role runs them."""
    with psycopg.connect(postgres.limited_url, autocommit=True) as connection:
        for name in TYPES:
            connection.execute(
                f"CREATE FUNCTION pg_temp.tell_{name}(told pg_catalog.{name}) "
                "RETURNS pg_catalog.bool LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE WARNING 'run by %', current_user; RETURN true; END $$"
            )
            connection.execute(
                f"CREATE DOMAIN pg_temp.{name} AS pg_catalog.{name} "
                f"CHECK (pg_temp.tell_{name}(VALUE))"
            )
        connection.execute("SET search_path = pg_temp, pg_catalog")
        yield connection


@pytest.mark.parametrize("entry", ENTRIES)
def test_names_that_a_caller_made_are_not_taken_for_names_of_the_system(postgres, hostile, entry):
    told: list[str | None] = []
    hostile.add_notice_handler(lambda notice: told.append(notice.message_primary))
    hostile.execute("SELECT NULL::text")
    assert told == ["run by worker"]
    ((number,),) = postgres.execute(
        f"SELECT pronargs FROM pg_proc WHERE oid = 'pressure_mp.{entry}'::regproc"
    )
    with suppress(psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError):
        hostile.execute(f"SELECT pressure_mp.{entry}({', '.join(['NULL'] * number)})")
    assert "run by postgres" not in told
