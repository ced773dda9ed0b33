"""The schema: to install it, to bring it up to date, to remove it."""

from __future__ import annotations

import re
from importlib.resources import files

from .address import DEFAULT_SCHEMA

#: Of what this package's functions and tables are. One more with each change of either.
VERSION = 1

_NAME = re.compile(rf"\b{DEFAULT_SCHEMA}\.")
#: The functions that clients call. Whoever may call these may use the queues, and needs no rights
#: to the tables.
ENTRIES = (
    *("call_items", "call_tasks", "look_at", "leave", "call_host"),
    *("put_one", "put_next", "take_one", "take_next", "list_queues", "server_settings"),
    *("append_sample", "read_samples", "stage", "version"),
)
#: What runs with the rights of the schema's owner: these, and what a commit calls.
_DEFINED = (*ENTRIES, "call_staged")
#: Of these, those that begin with "set_up" unless they find the settings as they are to be: to have
#: them set for each call, as it is done for the others, takes long beside what these do.
_SET_UP = ("call_items", "call_tasks", "put_one", "put_next", "take_one", "take_next")
#: The settings that the functions need, which clients' connections have too. Nothing of others is
#: found before what the database system has. The planner is told that every table is read by its
#: index, however small it was when a plan was made, and that a plan is made once.
SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}


def install_sql(
    schema: str = DEFAULT_SCHEMA, unlogged: bool = False, is_there: bool = False
) -> str:
    """What makes the schema, in one transaction. ``unlogged``: for queues that may be lost when the
    server crashes. ``is_there``: it was made before, and is empty."""
    tables = _text("01_tables.sql", schema)
    if unlogged:
        tables = tables.replace("\nCREATE TABLE ", "\nCREATE UNLOGGED TABLE ")
    made = "" if is_there else f"CREATE SCHEMA {schema};"
    return "\n".join((made, tables, _functions(schema)))


def upgrade_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """What brings the functions up to date, while clients use them. The tables are those of every
    version so far."""
    return f"{_functions(schema)}\n{_grant_again(schema)}"


def uninstall_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """What removes it, with all queues."""
    return f"DROP SCHEMA IF EXISTS {schema} CASCADE;"


def grant_sql(role: str, schema: str = DEFAULT_SCHEMA) -> str:
    """What lets a role use the queues."""
    quoted = '"' + role.replace('"', '""') + '"'
    grants = [f"GRANT EXECUTE ON FUNCTION {schema}.{name} TO {quoted};" for name in ENTRIES]
    return "\n".join((f"GRANT USAGE ON SCHEMA {schema} TO {quoted};", *grants))


def _grant_again(schema: str) -> str:
    """What lets the roles that use the queues call the functions that are new."""
    entries = ", ".join(f"{schema}.{name}" for name in ENTRIES)
    return (
        "DO $$ DECLARE a_role text; BEGIN FOR a_role IN SELECT DISTINCT e.grantee::regrole::text "
        "FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) e "
        f"WHERE p.oid = '{schema}.version'::regproc AND e.grantee NOT IN (0, p.proowner) LOOP "
        f"EXECUTE 'GRANT EXECUTE ON FUNCTION {entries} TO ' || a_role; END LOOP; END $$;"
    )


def _functions(schema: str) -> str:
    folder = files(__package__) / "sql"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    texts = [_text(name, schema) for name in names if name != "01_tables.sql"]
    texts.append(
        f"CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql "
        f"IMMUTABLE AS 'SELECT {VERSION}';"
    )
    settings = ", ".join(
        f"pg_catalog.set_config('{setting}', '{value}', true)"
        for setting, value in SETTINGS.items()
    )
    texts.append(  # until the transaction ends
        f"CREATE OR REPLACE FUNCTION {schema}.set_up() RETURNS void LANGUAGE sql VOLATILE "
        f"AS $$ SELECT {settings} $$;"
    )
    for name in _DEFINED:
        texts.append(f"ALTER FUNCTION {schema}.{name} SECURITY DEFINER;")
        if name not in _SET_UP:
            texts += [
                f"ALTER FUNCTION {schema}.{name} SET {setting} = {value};"
                for setting, value in SETTINGS.items()
            ]
    texts.append(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;")
    return "\n".join(texts)


def _text(name: str, schema: str) -> str:
    text = (files(__package__) / "sql" / name).read_text(encoding="utf-8")
    return _NAME.sub(f"{schema}.", text)
