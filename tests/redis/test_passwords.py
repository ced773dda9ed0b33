"""A password is used, and never shown: not in a URL, a repr, an error, or what it came from."""

from __future__ import annotations

import pickle
import traceback

import pytest
from servers import free_port

import pressure_mp
from pressure_mp import PressureQueue, Queue
from pressure_mp.config import parse_url

PASSWORD = "s3cret/w0rd?#@:"
QUOTED = "s3cret%2Fw0rd%3F%23%40%3A"
#: What must not be seen: any part of it, in either spelling.
PARTS = ("s3cret", "w0rd")


@pytest.fixture
def user(server, name):
    """A user with a password at each kind of server."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", name, "on", f">{PASSWORD}", "~*", "+@all")
        yield name
        client.execute_command("ACL", "DELUSER", name)


def shown(error):
    """An error's texts, its whole chain's, and those of its traceback."""
    texts, chain = traceback.format_exception(error), [error]
    for link in chain:  # which can lead back to where it was
        texts += [str(link), repr(link), repr(link.args)]
        chain += {link.__cause__, link.__context__} - {None, *chain}
    return "\n".join(texts)


def refused(url, match=None, kind=pressure_mp.PressureError):
    with pytest.raises(kind, match=match) as caught:
        Queue(name="never-made", url=url)
    text = shown(caught.value)
    for part in PARTS:
        assert part not in text
    return text


@pytest.mark.parametrize(
    "form",
    [
        "redis://{user}:{quoted}@{place}/0",
        "redis://{place}/0?username={user}&password={quoted}",
        "redis://{place}?password={quoted}&db=0&username={user}",
    ],
)
def test_a_login_works_and_is_not_shown(server, user, name, form):
    url = form.format(user=user, quoted=QUOTED, place=f"127.0.0.1:{server.port}")
    q = Queue(name=name, url=url)
    q.put(1)
    copy = pickle.loads(pickle.dumps(q))
    assert copy.get() == 1
    assert q.url == copy.url == f"redis://{user}@127.0.0.1:{server.port}/0"
    for text in (q.url, repr(q), repr(copy), repr(vars(copy)), repr(copy._address), q.client_id):
        assert not any(part in text for part in PARTS)
    q.delete()


def test_a_login_over_a_unix_socket_is_not_shown(valkey, name):
    q = PressureQueue(name, url=f"unix://nobody:{QUOTED}@{valkey.socket}")
    assert q.url == valkey.unix_url
    with pytest.raises(pressure_mp.BrokerError) as caught:
        q.exists()
    assert not any(part in shown(caught.value) for part in PARTS)


def test_options_that_are_passwords_are_not_shown():
    address = parse_url(f"rediss://h?ssl_password={QUOTED}&ssl_ca_certs=ca.pem")
    assert address.url == "rediss://h:6379/0?ssl_ca_certs=ca.pem"
    assert QUOTED in address.query  # redis-py gets it
    assert parse_url(f"rediss://h?ssl_password={QUOTED}").url == "rediss://h:6379/0"


def test_a_refusal_shows_no_password(server, user):
    place = f"127.0.0.1:{server.port}"
    refused(f"redis://{user}:{QUOTED}x@{place}", "refuses the login", pressure_mp.BrokerError)
    refused(f"redis://{user}:{QUOTED}@{place}/9999", "refuses", pressure_mp.BrokerError)
    refused(f"redis://{user}:{QUOTED}@{place}?colour=blue", "unknown option")
    refused(
        f"rediss://{user}:{QUOTED}@{place}?socket_connect_timeout=1",
        "no broker",
        pressure_mp.BrokerUnavailable,
    )
    refused(f"redis://{user}:{QUOTED}@127.0.0.1:{free_port()}", "no broker")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", user, "-evalsha")
    refused(f"redis://{user}:{QUOTED}@{place}", "NOPERM", pressure_mp.BrokerError)


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:s3cret/w0rd@h:1/0",
        "redis://u:12/w0rd@h:1/0",
        "redis://u:s3cret?w0rd@h:1/0",
        "redis://u:12?w0rd@h:1/0",
        "redis://u:12#w0rd@h:1/0",
        "redis://u:s3cret[w0rd@h:1",
        "redis://h:port?password=s3cret@w0rd",
        "redis://h:1/zero?password=s3cret@w0rd",
        "gopher://u:s3cret@h?password=w0rd",
        "u:s3cret@h",
        "s3cret@h",
        "unix://u:s3cret@",
    ],
)
def test_a_url_that_cannot_be_read_shows_no_part_of_a_password(url):
    refused(url, kind=pressure_mp.AddressError)


def test_an_unescaped_password_says_how_to_write_it():
    for url in ("redis://u:pa/ss@h:1/0", "redis://u:1/2@h:1/0", "redis://u:1#2@h"):
        refused(url, "%2F", pressure_mp.AddressError)
