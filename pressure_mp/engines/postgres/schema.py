"""The SQL that installs, upgrades and removes the schema."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from .address import DEFAULT_SCHEMA

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SQL = files(__package__) / "sql"

#: The version of this package's functions and tables, which each change of either increases by one.
VERSION = 1
#: The oldest version of the package whose clients can use these functions: clients that are at work
#: during an upgrade go on, and so do the processes that they start.
SERVES = 1

_MADE = re.compile(
    rf'^CREATE (?:OR REPLACE |UNLOGGED )?(FUNCTION|TABLE|TYPE) "{DEFAULT_SCHEMA}"\.(\w+)',
    re.MULTILINE,
)
_NAME = re.compile(rf"\b{DEFAULT_SCHEMA}\.")
#: The functions that clients call. A role with the right to call these may use the queues, and
#: needs no rights to the tables.
ENTRIES = (
    *("call", "look_at", "leave", "call_host"),
    *("put_one", "put_next", "take_one", "take_next", "list_queues", "server_settings"),
    *("append_sample", "read_samples", "stage", "flush", "forward", "version", "serves"),
)
#: The functions that run with the rights of the schema's owner: these, and the one that a commit
#: calls.
_DEFINED = (*ENTRIES, "call_staged")
#: Where a function makes its settings itself: to have them set for each call, as for the other
#: functions, takes long compared with its work.
_MARK = "    -- The settings: schema.py says what is done here.\n"
_WITH_MARK = re.compile(rf'FUNCTION "\w+"\.(\w+)\((?:(?!\nEND \$\$)[\s\S])*?{re.escape(_MARK)}')
#: The settings that the functions need, which clients' connections have too. Names are found in the
#: system's schemas before any other. The planner reads every table by its index, however small it
#: was when a plan was made, and makes a plan once.
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
    """Make the SQL that installs the schema, in one transaction. ``unlogged``: for queues that may
    be lost when the server crashes. ``is_there``: the schema exists, and is empty."""
    schema = quoted(schema)
    tables = _text(_SQL / "01_tables.sql", schema)
    if unlogged:
        tables = tables.replace("\nCREATE TABLE ", "\nCREATE UNLOGGED TABLE ")
    made = "" if is_there else f"CREATE SCHEMA {schema};"
    return "\n".join((made, tables, _functions(schema)))


def upgrade_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """Make the SQL that upgrades the functions, in one transaction, while clients use them."""
    schema = quoted(schema)
    return "\n".join((_functions(schema), _grant_again(schema)))


def uninstall_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """Make the SQL that removes the schema, with all queues: it fails if the schema has other
    objects, or objects elsewhere depend on it."""
    schema = quoted(schema)
    own: dict[str, list[str]] = {"FUNCTION": [], "TABLE": [], "TYPE": []}
    for one in own_names():
        kind, name = one.split()
        own[kind].append(f"'{name}'" if kind == "FUNCTION" else f"{schema}.{name}")
    functions, tables, types = (", ".join(names) for names in own.values())
    return f"""DROP TRIGGER IF EXISTS call_staged ON {schema}.staged;
DO $$ BEGIN
    EXECUTE (SELECT 'DROP FUNCTION ' || string_agg(p.oid::regprocedure::text, ', ')
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = '{schema}'::regnamespace AND p.proname IN ({functions}));
END $$;
DROP TYPE IF EXISTS {types};
DROP TABLE IF EXISTS {tables};
DROP SCHEMA {schema};"""


def own_names() -> list[str]:
    """List the objects that this package makes in the schema, with their kinds. Objects that a
    later version no longer makes must stay in this list, since upgraded schemas have them."""
    return [f"{kind} {name}" for kind, name in _MADE.findall(install_sql())]


def grant_sql(role: str, schema: str = DEFAULT_SCHEMA) -> str:
    """Make the SQL that lets a role use the queues."""
    schema, role = quoted(schema), quoted(role)
    grants = [f"GRANT EXECUTE ON FUNCTION {schema}.{name} TO {role};" for name in ENTRIES]
    return "\n".join((f"GRANT USAGE ON SCHEMA {schema} TO {role};", *grants))


def quoted(name: str) -> str:
    """Quote a name for a statement, also if it is a keyword of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _grant_again(schema: str) -> str:
    """Make the SQL that lets the roles that use the queues call new functions."""
    entries = ", ".join(f"{schema}.{name}" for name in ENTRIES)
    return (
        "DO $$ DECLARE a_role text; BEGIN FOR a_role IN SELECT DISTINCT e.grantee::regrole::text "
        "FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) e "
        f"WHERE p.oid = '{schema}.version'::regproc AND e.grantee NOT IN (0, p.proowner) LOOP "
        f"EXECUTE 'GRANT EXECUTE ON FUNCTION {entries} TO ' || a_role; END LOOP; END $$;"
    )


def _functions(schema: str) -> str:
    names = sorted(one.name for one in _SQL.iterdir() if one.name.endswith(".sql"))
    texts = [_text(_SQL / name, schema) for name in names if name != "01_tables.sql"]
    for name, number in (("version", VERSION), ("serves", SERVES)):
        texts.append(
            f"CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS integer LANGUAGE sql "
            f"IMMUTABLE AS 'SELECT {number}';"
        )
    settings = ", ".join(
        f"pg_catalog.set_config('{setting}', '{value}', true)"
        for setting, value in SETTINGS.items()
    )
    texts.append(  # until the transaction ends
        f"CREATE OR REPLACE FUNCTION {schema}.set_up() RETURNS void LANGUAGE sql VOLATILE "
        f"AS $$ SELECT {settings} $$;"
    )
    set_up = {name for text in texts for name in _WITH_MARK.findall(text)}
    texts = [text.replace(_MARK, _seeing_to_settings(schema)) for text in texts]
    for name in _DEFINED:
        texts.append(f"ALTER FUNCTION {schema}.{name} SECURITY DEFINER;")
        if name not in set_up:
            texts += [
                f"ALTER FUNCTION {schema}.{name} SET {setting} = {value};"
                for setting, value in SETTINGS.items()
            ]
    texts.append(f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC;")
    return "\n".join(texts)


def _seeing_to_settings(schema: str) -> str:
    """Make the first statements of a function, which make its settings: before them, each name
    needs its schema."""
    return f"""    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>)
        '{SETTINGS["search_path"]}'::pg_catalog.text
    THEN
        PERFORM {schema}.set_up();
    END IF;
"""


def _text(file: Traversable, schema: str) -> str:
    return _NAME.sub(f"{schema}.", file.read_text(encoding="utf-8"))
