"""An option of a URL does what it says, or is an AddressError that names it."""

from __future__ import annotations

import re

import pytest

from pressure_mp import AddressError, Queue
from pressure_mp.engines import registry

pytestmark = pytest.mark.usefixtures("world")


@pytest.mark.parametrize(
    "option",
    [
        "socket_connect_timeout=3",
        "socket_read_size=1",
        "client_name=me",
        "socket_timeout=0.01",
        "retry_on_timeout=1&socket_timeout=0.01",
        "health_check_interval=1",
        "decode_responses=1",
    ],
)
def test_an_option_that_there_is_can_be_used(option, server, name):
    q = Queue(name=name, url=f"{server.url}?{option}")
    q.put("an item")
    assert q.get() == "an item"
    q.delete()


@pytest.mark.parametrize(
    "name",
    [
        *("colour", "retry", "retry_on_error", "max_connections", "single_connection_client"),
        *("redis_connect_func", "credential_provider", "maint_notifications_config"),
        *("parser_class", "command_packer", "driver_info", "event_dispatcher", "connection_pool"),
        *("host", "port", "path", "socket_type", "socket_keepalive", "encoding_errors", "timeout"),
        *("ssl", "ssl_ca_certs", "sentinel_username"),
    ],
)
def test_an_option_that_there_is_not_is_named(name, url_of_redis):
    text = re.escape(f"has an unknown option '{name}'; it can have db, ")
    with pytest.raises(AddressError, match=text):
        Queue(name="q", url=f"{url_of_redis}?{name}=1")


@pytest.mark.parametrize(
    "option",
    [
        *(f"socket_connect_timeout={value}" for value in ("x", "0", "-1", "nan", "inf")),
        *(f"socket_read_size={value}" for value in ("x", "0", "-1")),
        *("socket_timeout=x", "health_check_interval=x", "client_name=a b", "client_name=ü"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(option, url_of_redis):
    with pytest.raises(AddressError, match=option.partition("=")[0]) as caught:
        Queue(name="q", url=f"{url_of_redis}?{option}", reconnect=0).put(1)
    assert "unknown" not in str(caught.value)


@pytest.mark.parametrize("option", ["ssl_cert_reqs=x", "ssl_min_version=x", "ssl_min_version=7"])
def test_a_value_for_tls_that_cannot_be_used_is_an_address_error(option, url_of_redis):
    url = f"{url_of_redis.replace('redis:', 'rediss:')}?{option}"
    with pytest.raises(AddressError, match=r"SSL|ssl_"):
        Queue(name="q", url=url, reconnect=0).open()


@pytest.mark.only_threads("it makes no queue")
@pytest.mark.parametrize("scheme", ["redis", "unix", "embedded", "redis+sentinel", "redis+cluster"])
def test_an_error_does_not_show_an_option_that_may_be_part_of_a_password(scheme):
    with pytest.raises(AddressError, match="unknown option that is no word") as caught:
        registry.parse(f"{scheme}:///path?s3cret!w0rd=1", "prefix", {})
    assert "s3cret" not in str(caught.value)


@pytest.fixture
def url_of_redis(valkey):
    return valkey.url
