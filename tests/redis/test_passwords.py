"""A password is used, and never shown: not in a URL, a repr, an error, or what it came from."""

from __future__ import annotations

import io
import pickle
import traceback

import inside
import pytest
import rich.console
import rich.traceback
from ports import free_port

import pressure_mp
from pressure_mp import (
    FairQueue,
    JoinableQueue,
    PressureQueue,
    PriorityQueue,
    Queue,
    SimpleQueue,
    TaskQueue,
)
from pressure_mp.engines import registry

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
    """The texts of an error, of its whole chain, and of its traceback."""
    texts, chain = traceback.format_exception(error), [error]
    for link in chain:  # which can lead back to where it was
        texts += [str(link), repr(link), repr(link.args)]
        chain += {link.__cause__, link.__context__} - {None, *chain}
    return "\n".join(texts)


def refused(url, match=None, kind=pressure_mp.PressureError):
    with pytest.raises(kind, match=match) as caught:
        Queue(name="never-made", url=url, reconnect=0).open()
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
    for text in (
        q.url,
        repr(q),
        repr(copy),
        repr(vars(copy)),
        repr(inside.address(copy)),
        q.client_id,
    ):
        assert not any(part in text for part in PARTS)
    q.delete()


def test_a_login_over_a_unix_socket_is_not_shown(valkey, name):
    q = PressureQueue(name, url=f"unix://nobody:{QUOTED}@{valkey.socket}")
    assert q.url == valkey.unix_url
    with pytest.raises(pressure_mp.BrokerError) as caught:
        q.exists()
    assert not any(part in shown(caught.value) for part in PARTS)


def test_options_that_are_passwords_are_not_shown():
    address = registry.parse(f"rediss://h?ssl_password={QUOTED}&ssl_ca_certs=ca.pem")
    assert address.url == "rediss://h:6379/0?ssl_ca_certs=ca.pem"
    assert QUOTED in address.query  # redis-py gets it
    assert registry.parse(f"rediss://h?ssl_password={QUOTED}").url == "rediss://h:6379/0"


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


def chain(error):
    """An error and all that it came from."""
    found = [error]
    for link in found:  # which can lead back to where it was
        found += {link.__cause__, link.__context__} - {None, *found}
    return found


def below(error):
    """The part of an error's traceback that is not this module's: a user's own variables show what
    the user wrote."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def shown_of(thing):
    """As such tools show it, also a thing that is not yet complete."""
    try:
        return repr(thing)
    except Exception as error:
        return repr(error)


def attributes(thing):
    names = getattr(type(thing), "__slots__", ())
    slots = [getattr(thing, name, None) for name in ([names] if isinstance(names, str) else names)]
    return [*getattr(thing, "__dict__", {}).values(), *slots]


def locals_shown(error):
    """What tools show of an error: the local variables of every frame, and their attributes."""
    texts = []
    for link in chain(error):
        frames = [frame for frame, _ in traceback.walk_tb(below(link))]
        values = [value for frame in frames for value in frame.f_locals.values()]
        texts += map(shown_of, values)
        texts += [shown_of(each) for value in values for each in attributes(value)]
    return "\n".join(texts)


def shown_by_rich(error):
    out = io.StringIO()
    shown = rich.traceback.Traceback.from_exception(
        type(error), error, below(error), show_locals=True, locals_max_length=None
    )
    rich.console.Console(file=out, width=400).print(shown)
    return out.getvalue()


def caught(make, show=locals_shown):
    with pytest.raises(pressure_mp.PressureError) as raised:
        make()
    assert below(raised.value) is not None
    return show(raised.value)


#: Longer than what some tools show of a str.
LONG = "s3cret-" * 20 + "w0rd"


def where(server, place):
    """URLs with a password that cannot be used, up to the address; and what follows it."""
    return {
        "refused login": (f"redis://:{LONG}@127.0.0.1:{server.port}/0", ""),
        "refused login of a user": (f"redis://me:{LONG}@127.0.0.1:{server.port}/0", ""),
        "no server": (f"redis://:{LONG}@{place}/0", ""),
        "no TLS": (f"rediss://:{LONG}@127.0.0.1:{server.port}/0", "?socket_connect_timeout=1"),
        "no key for TLS": (
            f"rediss://127.0.0.1:{server.port}",
            f"?ssl_password={LONG}&ssl_certfile=missing",
        ),
        "unix": (f"unix://:{LONG}@{server.socket}", ""),
        "no socket": (f"unix://:{LONG}@/nowhere/s.sock", ""),
        "sentinel": (f"redis+sentinel://:{LONG}@{place}/service", f"?sentinel_password={LONG}"),
        "login at a sentinel": (
            f"redis+sentinel://127.0.0.1:{server.port}/service",
            f"?sentinel_password={LONG}",
        ),
        "cluster": (f"redis+cluster://:{LONG}@{place}", ""),
        "login at a cluster": (f"redis+cluster://:{LONG}@127.0.0.1:{server.port}", ""),
        "unknown option": (f"redis://:{LONG}@{place}/0", "?colour=blue"),
        "bad option": (f"redis://:{LONG}@{place}/0", "?socket_timeout=soon"),
        "bad port": (f"redis://:{LONG}@127.0.0.1:port/0", ""),
        "no scheme": (f"gopher://:{LONG}@127.0.0.1", ""),
    }


CASES = list(where(type("Server", (), {"port": 0, "socket": ""}), ""))


@pytest.mark.parametrize("case", CASES)
def test_no_local_variable_shows_a_password(valkey, name, case, monkeypatch):
    url = "".join(where(valkey, f"127.0.0.1:{free_port()}")[case])
    key = LONG
    monkeypatch.setenv("SOME_PASSWORD", LONG)
    for make in (
        lambda: Queue(name=f"{{{name}}}", url=url, reconnect=0, authkey=key).open(),
        lambda: JoinableQueue(name=f"{{{name}}}", url=url, reconnect=0, authkey=[key, key]).open(),
    ):
        text = caught(make)
        assert not any(part in text for part in PARTS)
    text = caught(make, shown_by_rich)
    assert not any(part in text for part in PARTS)
    monkeypatch.setenv("PRESSURE_URL", url)
    text = caught(lambda: Queue(name=f"{{{name}}}", reconnect=0).open())
    assert not any(part in text for part in PARTS)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: SimpleQueue("name", **options).open(),
        lambda **options: Queue.create("name", **options),
        lambda **options: Queue.attach("name", **options),
        lambda **options: PriorityQueue(name="name", **options).open(),
        lambda **options: FairQueue(len, name="name", **options).open(),
        lambda **options: TaskQueue("name", **options).open(),
        lambda **options: TaskQueue.create("name", **options),
        lambda **options: TaskQueue.attach("name", **options),
        lambda authkey, **options: PressureQueue("name", **options).exists(),
    ],
)
def test_no_kind_of_handle_shows_a_password_or_a_key(valkey, make):
    url = f"redis://:{LONG}@127.0.0.1:{valkey.port}/0"
    text = caught(lambda: make(url=url, reconnect=0, authkey=LONG.encode()))
    assert not any(part in text for part in PARTS)


def test_an_unusable_key_is_not_shown_with_its_neighbours(monkeypatch):
    monkeypatch.setenv("SOME_PASSWORD", LONG)
    text = caught(lambda: Queue(name="q", url="memory://x", authkey=[LONG, ""]))
    assert not any(part in text for part in PARTS)
    monkeypatch.setenv("PRESSURE_AUTHKEY", f"{LONG},,")
    text = caught(lambda: Queue(name="q", url="memory://x"))
    assert not any(part in text for part in PARTS)


def test_a_handle_without_its_key_shows_no_environment(monkeypatch):
    q = Queue(name="q", url="memory://x", authkey=b"one")
    copy = pickle.dumps(q)
    monkeypatch.setattr(pressure_mp.encoding.signing, "_held", {})
    monkeypatch.setenv("SOME_PASSWORD", LONG)
    text = caught(lambda: pickle.loads(copy).put(1))
    assert not any(part in text for part in PARTS)


@pytest.mark.parametrize("variable", ["REDIS_PORT", "REDIS_DB", "PRESSURE_ALLOW_EVICTION"])
def test_a_variable_that_is_wrong_shows_no_other_variable(monkeypatch, variable):
    monkeypatch.delenv("PRESSURE_URL", raising=False)
    monkeypatch.setenv("SOME_PASSWORD", PASSWORD)
    monkeypatch.setenv(variable, "wrong")
    text = caught(lambda: Queue(name="never-made"))
    assert variable in text
    assert not any(part in text for part in PARTS)


def test_a_url_of_the_environment_is_not_shown_when_another_variable_is_wrong(monkeypatch):
    monkeypatch.setenv("PRESSURE_URL", f"redis://user:{QUOTED}@127.0.0.1/0")
    monkeypatch.setenv("PRESSURE_ALLOW_EVICTION", "wrong")
    text = caught(lambda: Queue(name="never-made"))
    assert "PRESSURE_ALLOW_EVICTION" in text
    assert not any(part in text for part in PARTS)
