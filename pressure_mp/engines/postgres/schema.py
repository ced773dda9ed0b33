"""The schema: to install it, to bring it up to date, to remove it."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from .address import DEFAULT_SCHEMA

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SQL = files(__package__) / "sql"

#: Of what this package's functions and tables are. One more with each change of either.
VERSION = 1
#: The oldest version of the package whose clients can use these functions: those that are at work
#: when the schema is upgraded go on, and so do the processes that they start.
SERVES = 1
#: What makes the tables of one version those of the next: 001_to_002.sql, and so on. Calls that
#: wait meanwhile are made by the functions from before: the tables must still be right for them.
STEPS: Traversable = _SQL / "upgrades"

_MADE = re.compile(
    rf'^CREATE (?:OR REPLACE |UNLOGGED )?(FUNCTION|TABLE|TYPE) "{DEFAULT_SCHEMA}"\.(\w+)',
    re.MULTILINE,
)
_NAME = re.compile(rf"\b{DEFAULT_SCHEMA}\.")
#: The functions that clients call. Whoever may call these may use the queues, and needs no rights
#: to the tables.
ENTRIES = (
    *("call_items", "call_tasks", "look_at", "leave", "call_host"),
    *("put_one", "put_next", "take_one", "take_next", "list_queues", "server_settings"),
    *("append_sample", "read_samples", "stage", "version", "serves"),
)
#: What runs with the rights of the schema's owner: these, and what a commit calls.
_DEFINED = (*ENTRIES, "call_staged")
#: Where a function sees to its settings itself: to have them set for each call, as it is done for
#: the others of these, takes long beside what it does.
_MARK = "    -- The settings: schema.py says what is done here.\n"
_WITH_MARK = re.compile(rf'FUNCTION "\w+"\.(\w+)\((?:(?!\nEND \$\$)[\s\S])*?{re.escape(_MARK)}')
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
    schema = quoted(schema)
    tables = _tables(_SQL / "01_tables.sql", schema, unlogged)
    made = "" if is_there else f"CREATE SCHEMA {schema};"
    return "\n".join((made, tables, _functions(schema)))


def upgrade_sql(schema: str = DEFAULT_SCHEMA, since: int = VERSION, unlogged: bool = False) -> str:
    """What brings a schema of the version ``since`` up to date, in one transaction, while clients
    use it: the steps of the tables, and all functions."""
    schema = quoted(schema)
    steps = [
        _tables(STEPS / f"{number:03}_to_{number + 1:03}.sql", schema, unlogged)
        for number in range(since, VERSION)
    ]
    if steps:
        steps.insert(0, _text(STEPS / "begin.sql", schema))
    return "\n".join((*steps, _functions(schema), _grant_again(schema)))


def uninstall_sql(schema: str = DEFAULT_SCHEMA) -> str:
    """What removes it, with all queues: it fails if there is anything else in it, or anything that
    depends on it."""
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
    """What this package makes in the schema: the kind of each, and its name. What a later version
    makes no longer has to be named here still, since it is in schemas that were upgraded."""
    return [f"{kind} {name}" for kind, name in _MADE.findall(install_sql())]


def grant_sql(role: str, schema: str = DEFAULT_SCHEMA) -> str:
    """What lets a role use the queues."""
    schema, role = quoted(schema), quoted(role)
    grants = [f"GRANT EXECUTE ON FUNCTION {schema}.{name} TO {role};" for name in ENTRIES]
    return "\n".join((f"GRANT USAGE ON SCHEMA {schema} TO {role};", *grants))


def quoted(name: str) -> str:
    """A name, as it is in a statement, also if it is a word of SQL's."""
    return '"' + name.replace('"', '""') + '"'


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
    found = sorted((one for one in _SQL.iterdir() if one.name.endswith(".sql")), key=_name)
    texts = [_text(one, schema) for one in found if one.name != "01_tables.sql"]
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
    """What a function begins with: until then it names nothing without its schema."""
    return f"""    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>)
        '{SETTINGS["search_path"]}'::pg_catalog.text
    THEN
        PERFORM {schema}.set_up();
    END IF;
"""


def _tables(file: Traversable, schema: str, unlogged: bool) -> str:
    text = _text(file, schema)
    return text.replace("\nCREATE TABLE ", "\nCREATE UNLOGGED TABLE ") if unlogged else text


def _text(file: Traversable, schema: str) -> str:
    return _NAME.sub(f"{schema}.", file.read_text(encoding="utf-8"))


def _name(file: Traversable) -> str:
    return file.name
