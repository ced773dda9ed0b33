"""The address of a broker that a URL gives, of every engine."""

from __future__ import annotations

import pickle
from multiprocessing import current_process

import pytest

from pressure_mp import ArgumentTypeError
from pressure_mp.engines import registry
from pressure_mp.engines.contract.address import Capabilities

SHOWN = {
    "redis://": "redis://127.0.0.1:6379/0",
    "redis://host": "redis://host:6379/0",
    "redis://:1/5": "redis://127.0.0.1:1/5",
    "redis://host/5?db=7": "redis://host:6379/7",
    "redis://host/5?db=0": "redis://host:6379/0",
    "rediss://user:word@[::1]:2?ssl_ca_certs=ca.pem": "rediss://user@[::1]:2/0?ssl_ca_certs=ca.pem",
    "redis://host?username=user&password=word": "redis://user@host:6379/0",
    "redis://host?allow_eviction=1": "redis://host:6379/0?allow_eviction=1",
    "unix:///a%20place?db=2": "unix:///a%20place?db=2",
    "redis+sentinel://a,b:1/main/3": "redis+sentinel://a:26379,b:1/main/3",
    "redis+sentinel://a/main?db=4&sentinel_username=user&sentinel_password=word": (
        "redis+sentinel://a:26379/main/4?sentinel_username=user"
    ),
    "rediss+cluster://a,b:1": "rediss+cluster://a:6379,b:1",
    "embedded://": "embedded://",
    "embedded:///a%20directory": "embedded:///a%20directory",
    "memory://": "memory://",
    "memory://a/name": "memory://a/name",
}


@pytest.mark.parametrize("url", SHOWN)
def test_an_address_shows_what_its_url_says_and_no_password(url):
    address = registry.parse(url)
    assert address.url == SHOWN[url]
    assert "word" not in repr(address)
    again = registry.parse(address.url)
    assert again.url == address.url
    if "word" not in url:
        assert again == address
        assert hash(again) == hash(address)


def test_addresses_of_different_engines_or_prefixes_differ():
    urls = [url for url in SHOWN if "word" not in url]
    found = {registry.parse(url, prefix) for url in urls for prefix in ("one", "other")}
    assert len(found) == 2 * len({SHOWN[url] for url in urls})


SERVER = Capabilities(persistent=True, durable=True, takes_at_a_time=8)
CAPABILITIES = {
    "rediss://host": SERVER,
    "unix:///place": SERVER,
    "redis+sentinel://a,b:1/main/3": SERVER,
    "rediss+cluster://a,b:1": SERVER,
    "postgresql://host/db": SERVER._replace(relaxed=True, takes_at_a_time=1),
    "embedded://": SERVER._replace(starts=True, private=True),
    "embedded:///a%20directory": SERVER._replace(starts=True),
    "memory://a/name": Capabilities(persistent=False, durable=False, private=True),
}


@pytest.mark.parametrize("url", CAPABILITIES)
def test_an_address_says_what_its_engine_can_do(url, monkeypatch):
    monkeypatch.delenv("PRESSURE_EMBEDDED_SOCKET", raising=False)
    monkeypatch.delitem(current_process()._config, "pressure_mp_embedded", raising=False)
    assert registry.parse(url).capabilities == CAPABILITIES[url]


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("redis://:1/5", ("127.0.0.1", 1)),
        ("rediss://user:word@[::1]", ("::1", 6379)),
        ("unix:///a%20place?db=2", ("/a place", None)),
        ("redis+sentinel://a:1/main", None),
        ("redis+cluster://a:1", None),
        ("embedded://", None),
        ("embedded:///a%20directory", ("/a directory", None)),
        ("memory://a", None),
        ("postgresql://user:word@Host/db", ("Host", None)),
        ("postgresql://[::1]:5433/db", ("::1", 5433)),
        ("postgresql://%2Fvar%2Frun/db", ("/var/run", None)),
        ("postgresql://a,b/db", None),
        ("postgresql:///db", None),
    ],
)
def test_an_address_names_the_one_server_that_it_is_of(url, endpoint):
    assert registry.parse(url).endpoint == endpoint


@pytest.mark.parametrize("environ", [{"PRESSURE_ALLOW_EVICTION": "1"}, {}])
def test_each_engine_reads_its_own_variables(environ):
    allowed = bool(environ)
    for url in ("redis://host", "embedded://", "memory://"):
        address = registry.resolve(url, environ=environ)
        assert ("allow_eviction" in address.url) == (allowed and url != "memory://")


def test_the_environment_names_a_server_where_nothing_else_does():
    environ = {"REDIS_SERVER": "host", "REDIS_PORT": "1", "REDIS_DB": "2", "PRESSURE_PREFIX": "p"}
    address = registry.resolve(environ=environ)
    assert (address.url, address.prefix) == ("redis://host:1/2", "p")
    assert registry.resolve(host="other", environ=environ).url == "redis://other:1/2"
    assert registry.resolve("memory://", environ=environ).url == "memory://"
    assert registry.resolve(environ={**environ, "PRESSURE_URL": "unix:///s"}).url == "unix:///s"


@pytest.mark.parametrize(
    ("given", "environ", "shown"),
    [
        ({}, {}, " (the default address)"),
        ({}, {"REDIS_SERVER": "h", "REDIS_PORT": "1"}, " (from REDIS_SERVER, REDIS_PORT)"),
        ({"port": 1}, {"REDIS_PORT": "2", "REDIS_DB": "0"}, " (from the argument port, REDIS_DB)"),
        ({}, {"PRESSURE_URL": "redis://", "REDIS_PORT": "2"}, " (from PRESSURE_URL)"),
        ({"url": "redis+cluster://h"}, {"PRESSURE_URL": "redis://"}, " (from the argument url)"),
    ],
)
def test_an_address_remembers_what_named_it_and_is_equal_all_the_same(given, environ, shown):
    address = pickle.loads(pickle.dumps(registry.resolve(**given, environ=environ)))
    assert address.origin.shown == shown
    again = registry.parse(address.url)
    assert (again, hash(again), again.origin.shown) == (address, hash(address), "")


def test_a_url_or_prefix_that_is_no_text_is_a_type_error():
    with pytest.raises(ArgumentTypeError, match="url is a str"):
        registry.parse(b"redis://")
    with pytest.raises(ArgumentTypeError, match="prefix is a str"):
        registry.resolve(prefix=7)
