"""Which of a server's replies to INFO and CONFIG GET mean that data can be lost."""

from __future__ import annotations

import pytest

from pressure_mp.engines.redis.settings import examine

SAFE = {"appendonly": "yes", "appendfsync": "always", "maxclients": "10000", "timeout": "0"}


def found(info=(), config=()):
    text = "".join(f"{name}:{value}\r\n" for name, value in dict(info).items()).encode()
    settings = {**SAFE, **dict(config)}
    flat = [part.encode() for pair in settings.items() for part in pair]
    return {(one.subject, one.value): one.loses for one in examine(text, flat)}


@pytest.mark.parametrize(
    ("info", "config", "subject", "value", "loses"),
    [
        (
            {"maxmemory": "9", "maxmemory_policy": "allkeys-lru"},
            {},
            *("maxmemory-policy", "allkeys-lru", True),
        ),
        ({}, {"appendonly": "no", "save": "60 1"}, "appendonly", "no", True),
        ({}, {"appendfsync": "no"}, "appendfsync", "no", True),
        ({}, {"appendfsync": "everysec"}, "appendfsync", "everysec", False),
        (
            {"connected_slaves": "1"},
            {"min-replicas-to-write": "0"},
            *("min-replicas-to-write", "0", True),
        ),
        ({"role": "slave"}, {}, "role", "replica", False),
        ({}, {"maxclients": "100"}, "maxclients", "100", False),
        ({}, {"timeout": "60"}, "timeout", "60", False),
        ({"used_memory": "95", "maxmemory": "100"}, {}, "used_memory", "95", False),
        ({"evicted_keys": "3"}, {}, "evicted_keys", "3", True),
        ({"aof_last_write_status": "err"}, {}, "aof_last_write_status", "err", True),
    ],
)
def test_a_setting_that_loses_data_is_found(info, config, subject, value, loses):
    assert found() == {}
    assert found(info, config) == {(subject, value): loses}


def test_a_user_that_may_not_ask_is_told_so():
    (one,) = examine(None, None)
    assert (one.subject, one.loses) == ("INFO", False)
    assert [one.subject for one in examine(b"evicted_keys:1\r\n", None)] == [
        "evicted_keys",
        "CONFIG GET",
    ]
