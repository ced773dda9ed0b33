"""``connection=`` takes what SQLAlchemy and Django have around a connection of psycopg's."""

from __future__ import annotations

import asyncio

import pytest

from pressure_mp import Queue, aio
from pressure_mp.exceptions import ArgumentError, ArgumentTypeError


@pytest.fixture
def q(postgres, name):
    return Queue(name=name, url=postgres.limited_url)


def dialect(postgres):
    """The server's URL, as SQLAlchemy has it."""
    return postgres.limited_url.replace("postgresql:", "postgresql+psycopg:")


@pytest.fixture
def engine(postgres):
    sqlalchemy = pytest.importorskip("sqlalchemy")
    found = sqlalchemy.create_engine(dialect(postgres))
    yield found
    found.dispose()


def test_a_connection_of_sqlalchemy(engine, q):
    with engine.begin() as connection:
        q.put("in a block", connection=connection)
        assert q.empty()
    with engine.connect() as connection:
        q.put("as the first that it does", connection=connection)
        connection.commit()
        q.put("rolled back", connection=connection)
        connection.rollback()
    with engine.begin() as connection, connection.begin_nested() as inner:
        q.put("in a savepoint", connection=connection)
        inner.rollback()
    assert q.get_many(9) == ["in a block", "as the first that it does"]


def test_a_session_of_sqlalchemy(engine, q):
    from sqlalchemy.orm import Session

    with Session(engine) as session, session.begin():
        q.put("item", connection=session)
        assert q.empty()
    assert q.get_nowait() == "item"


def test_a_connection_of_sqlalchemy_in_autocommit_mode_is_refused(engine, q):
    automatic = engine.execution_options(isolation_level="AUTOCOMMIT")
    with automatic.connect() as connection, pytest.raises(ArgumentError, match="autocommit"):
        q.put("item", connection=connection)


def test_an_asynchronous_one_of_sqlalchemy(postgres, q):
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")

    async def run():
        engine = asynchronous.create_async_engine(dialect(postgres))
        mine = aio.Queue(name=q.name, url=postgres.limited_url)
        async with engine.begin() as connection:
            await mine.put("item", connection=connection)
            assert await mine.empty()
        async with engine.connect() as connection:
            await mine.put("as the first that it does", connection=connection)
            await connection.commit()
        await engine.dispose()

    asyncio.run(run())
    assert q.get_many(9) == ["item", "as the first that it does"]


@pytest.mark.parametrize("kind", ["AsyncSession", "async_scoped_session"])
def test_an_asynchronous_session_of_sqlalchemy_is_refused_for_its_connection(postgres, q, kind):
    asynchronous = pytest.importorskip("sqlalchemy.ext.asyncio")

    async def run():
        engine = asynchronous.create_async_engine(dialect(postgres))
        mine = aio.Queue(name=q.name, url=postgres.limited_url)
        session = asynchronous.AsyncSession(engine)
        if kind == "async_scoped_session":
            make = asynchronous.async_sessionmaker(engine)
            session = asynchronous.async_scoped_session(make, asyncio.current_task)
        for queue in (mine, q):
            with pytest.raises(ArgumentTypeError, match=r"await session\.connection\(\)"):
                await queue.put("refused", connection=session)
        await mine.put("item", connection=await session.connection())
        await session.commit()
        await session.close()
        await engine.dispose()

    asyncio.run(run())
    assert q.get_many(9) == ["item"]


def test_a_connection_over_another_driver_is_refused(q):
    engine = pytest.importorskip("sqlalchemy").create_engine("sqlite://")
    refused = pytest.raises(ArgumentTypeError, match=r"psycopg 3.*sqlalchemy.*sqlite3\.Connection")
    with engine.begin() as connection, refused:
        q.put("item", connection=connection)
    engine.dispose()


@pytest.fixture
def django_connection(postgres):
    django = pytest.importorskip("django")
    from django.conf import settings

    place = {"HOST": "127.0.0.1", "PORT": postgres.port, "USER": "postgres", "NAME": "postgres"}
    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **place}})
    django.setup()
    from django.db import NotSupportedError, connection

    try:
        connection.ensure_connection()
    except NotSupportedError as error:
        pytest.skip(f"Django: {error}")
    yield connection
    connection.close()


def test_a_connection_of_django(django_connection, q):
    from django.db import transaction

    with pytest.raises(ArgumentError, match=r"transaction\.atomic\(\)"):
        q.put("item", connection=django_connection)
    with transaction.atomic():
        q.put("item", connection=django_connection)
        assert q.empty()
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            q.put(1 / 0, connection=django_connection)
    assert q.get_nowait() == "item"
