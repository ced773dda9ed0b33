"""Any sentinel that answers says where the primary is."""

from __future__ import annotations

import asyncio
import pickle

import inside
import pytest
import trustme
from brokers.deployments import SERVICE, sentinels, started
from ports import free_port
from waiting import LIMIT

import pressure_mp
from pressure_mp import PressureQueue, Queue, TaskQueue
from pressure_mp.drivers import adrive


@pytest.fixture(scope="module")
def deployment():
    """A primary and one replica under three sentinels."""
    with sentinels("redis", 1) as found:
        yield found


def test_a_queue_is_at_the_primary_that_the_sentinels_name(deployment, name):
    q = Queue(name=name, url=deployment.url)
    q.put(1)
    assert q.url == f"{deployment.url}/0"
    with deployment.primary.client() as client:
        assert client.llen(f"__pressure__:{name}") == 1
    assert pickle.loads(pickle.dumps(q)).get() == 1
    q.delete()


def test_tasks_are_at_the_primary_too(deployment, name):
    tasks = TaskQueue(name, url=deployment.url)
    tasks.put("x", delay=0.05)
    with tasks.take(timeout=LIMIT) as task:
        assert task.data == "x"
    with deployment.primary.client() as client:
        assert list(client.scan_iter(match=f"__pressure__:mp:{{{name}}}:*"))
    tasks.delete()


def test_a_database_is_chosen_behind_the_service(deployment, name):
    q = Queue(name=name, url=f"{deployment.url}/3")
    q.open()
    assert not PressureQueue(name, url=deployment.url).exists()
    assert PressureQueue(name, url=f"{deployment.primary.url}/3").exists()
    q.delete()


def test_an_anonymous_queue_leaves_nothing_behind(deployment):
    with Queue(url=deployment.url) as q:
        q.put(1)
        assert q.get() == 1
    with deployment.primary.client() as client:
        assert not list(client.scan_iter(match=f"*{q.name}*"))


def test_an_asyncio_task_finds_the_primary_too(deployment, name):
    q = PressureQueue(name, url=deployment.url)
    q.create()
    binding = inside.bind(q)

    async def work():
        await adrive(inside.operations(q).put(b"x", True, None), binding.asession())
        return await adrive(inside.operations(q).get(True, None), binding.asession())

    assert asyncio.run(work()) == b"x"
    q.delete()


def test_sentinels_that_do_not_answer_are_passed_over(deployment, name):
    alive = deployment.sentinels[2].port
    url = f"redis+sentinel://127.0.0.1:{free_port()},127.0.0.1:{alive}/{SERVICE}"
    q = Queue(name=name, url=url)
    q.put(1)
    assert q.get() == 1
    q.delete()


def test_a_service_that_no_sentinel_knows_is_named(deployment):
    url = deployment.url.replace(SERVICE, "unheard-of")
    with pytest.raises(pressure_mp.BrokerUnavailable, match="knows no service 'unheard-of'"):
        Queue(url=url, reconnect=0)


def test_no_sentinel_at_all_is_broker_unavailable_and_names_them():
    ports = free_port(), free_port()
    url = f"redis+sentinel://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/{SERVICE}"
    with pytest.raises(pressure_mp.BrokerUnavailable, match="says where to go") as caught:
        Queue(url=url, reconnect=0)
    assert all(f"127.0.0.1:{port}" in str(caught.value) for port in ports)


def test_a_server_that_is_a_replica_is_not_taken_for_the_primary(deployment, name):
    """A sentinel may still name a server that has been made a replica."""
    (replica,) = (server for server in deployment.servers if server is not deployment.primary)
    config = f"sentinel monitor {SERVICE} 127.0.0.1 {replica.port} 1\n"
    with started("redis", "--sentinel", config=config) as sentinel:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/{SERVICE}"
        with pytest.raises(pressure_mp.BrokerUnavailable, match=f":{replica.port}.*is a replica"):
            Queue(name=name, url=url, reconnect=0).open()


def test_a_sentinel_that_is_wrong_is_not_asked_again_before_the_others(deployment, name):
    """It still names a server that is gone, as one that is cut off from the others does."""
    with started(
        "redis", "--sentinel", config=f"sentinel monitor {SERVICE} 127.0.0.1 1 1\n"
    ) as one:
        url = deployment.url.replace("//", f"//127.0.0.1:{one.port},")
        q = PressureQueue(name, url=url, reconnect=0)
        with pytest.raises(pressure_mp.BrokerUnavailable, match=r"no primary for.*127.0.0.1:1/"):
            q.create()
        q.create()
        q.delete()


def test_sentinels_and_servers_have_logins_of_their_own(name):
    with started("redis", "--requirepass", "server/secret") as server:
        config = f"sentinel monitor {SERVICE} 127.0.0.1 {server.port} 1\n"
        # A user of its own, which may do nothing but ask.
        config += (
            "user default off\nuser asker on >watch&secret +sentinel|get-master-addr-by-name\n"
        )
        with started("redis", "--sentinel", config=config) as sentinel:
            where = f"127.0.0.1:{sentinel.port}/{SERVICE}"
            url = (
                f"redis+sentinel://:server%2Fsecret@{where}?sentinel_password=watch%26secret"
                "&sentinel_username=asker"
                "&socket_connect_timeout=3"
            )
            q = Queue(name=name, url=url)
            q.open()
            q.put(1)
            assert pickle.loads(pickle.dumps(q)).get() == 1
            for text in (q.url, repr(q), str(inside.address(q))):
                assert "secret" not in text
            for wrong in (url.replace("watch", "wr0ng"), url.replace("server", "wr0ng")):
                with pytest.raises(pressure_mp.PressureError, match="refuses the login") as caught:
                    Queue(name=name, url=wrong).open()
                assert "secret" not in str(caught.value)


def test_sentinels_and_servers_speak_tls(name, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    tls = [
        *("--tls-auth-clients", "no", "--tls-replication", "yes"),
        *("--tls-ca-cert-file", str(tmp_path / "ca.pem")),
        *("--tls-cert-file", str(tmp_path / "cert.pem")),
        *("--tls-key-file", str(tmp_path / "key.pem")),
    ]
    ports = free_port(), free_port()
    config = f"sentinel monitor {SERVICE} 127.0.0.1 {ports[0]} 1\n"
    with (
        started("redis", "--tls-port", str(ports[0]), *tls),
        started("redis", "--sentinel", "--tls-port", str(ports[1]), *tls, config=config),
    ):
        url = f"rediss+sentinel://127.0.0.1:{ports[1]}/{SERVICE}"
        q = Queue(name=name, url=f"{url}?ssl_ca_certs={tmp_path}/ca.pem")
        q.open()
        q.put("over TLS")
        assert q.get() == "over TLS"
        with pytest.raises(pressure_mp.BrokerUnavailable, match=r"(?i)certificate"):
            Queue(name=name, url=url).open()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis+sentinel://localhost", "names no service: redis.sentinel://host:26379/service"),
        ("redis+sentinel:///service", "names no host"),
        ("redis+sentinel://localhost/service/seven", "'seven' is not a number"),
        ("redis+sentinel://a:b@h:x/s?sentinel_password=b", "…@h:x/s'"),
    ],
)
def test_a_bad_url_is_an_address_error(url, message):
    with pytest.raises(pressure_mp.AddressError, match=message):
        Queue(url=url)


def test_hosts_have_a_default_port_and_may_be_ipv6():
    url = (
        "redis+sentinel://us%40er:x@[::1]:1,[::2],host/service?sentinel_username=u&socket_timeout=9"
    )
    shown = "redis+sentinel://us%40er@[::1]:1,[::2]:26379,host:26379/service/0"
    assert PressureQueue("x", url=url).url == f"{shown}?socket_timeout=9&sentinel_username=u"
