"""Real deployments of several servers: replicas, Redis Sentinel, Redis Cluster. On loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from ports import free_port
from waiting import until

from brokers.servers import Server

SERVICE = "pressure"
#: Without others: a replica that comes back need not copy everything.
_REPLICATION = ("--repl-diskless-sync-delay", "0", "--repl-backlog-size", "8mb")


@contextmanager
def started(kind: str, *options: str, config: str = "") -> Iterator[Server]:
    """A server that is gone afterwards, whatever became of it."""
    server = Server(kind, options, config)
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def replicated(kind: str, replicas: int, *options: str) -> Iterator[list[Server]]:
    """A primary and then its replicas, in step."""
    with ExitStack() as stack:
        primary = stack.enter_context(started(kind, *_REPLICATION, *options))
        follow = ("--replicaof", f"127.0.0.1 {primary.port}")
        others = [
            stack.enter_context(started(kind, *_REPLICATION, *follow, *options))
            for _ in range(replicas)
        ]
        until(lambda: online_replicas(primary) == replicas)
        wait_until_confirmed(primary, replicas)
        yield [primary, *others]


def online_replicas(primary: Server) -> int:
    """How many replicas that server counts as up to date."""
    with primary.client() as client:
        info = client.info("replication")
    return sum(
        value["state"] == "online"
        for key, value in info.items()
        if key.startswith("slave") and key[5:].isdigit()
    )


def wait_until_confirmed(primary: Server, replicas: int) -> None:
    """Wait until so many replicas have confirmed all that the server did so far."""
    with primary.client() as client:
        client.set("something", 1, px=1)  # to wait for replicas is to wait for one's own writes
        assert client.wait(replicas, 10_000) == replicas


@dataclass
class SentinelDeployment:
    """A primary, its replicas, and the sentinels that watch over them."""

    servers: list[Server]
    sentinels: list[Server]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    @property
    def primary(self) -> Server:
        """The server that the first sentinel names."""
        port = int(self._ask(self.sentinels[0], "GET-MASTER-ADDR-BY-NAME")[1])
        (found,) = (server for server in self.servers if server.port == port)
        return found

    @property
    def is_settled(self) -> bool:
        """Whether all the servers but one are replicas of that one, and in step."""
        return len(self._named()) == 1 and online_replicas(self.primary) == len(self.servers) - 1

    def fail_over(self) -> None:
        """Ask for another primary; waits until all sentinels name it."""
        before = self.primary
        self._ask(self.sentinels[0], "FAILOVER")
        self.wait_for_another(before)

    def wait_for_another(self, before: Server) -> None:
        """Wait until all sentinels name another primary than that."""
        until(lambda: len(self._named()) == 1 and self.primary is not before, 60)

    def wait_until_they_know_each_other(self) -> None:
        expected = (len(self.servers) - 1, len(self.sentinels) - 1)

        def known(sentinel: Server) -> bool:
            reply = self._ask(sentinel, "MASTER")
            fields = dict(zip(reply[::2], reply[1::2], strict=True))
            return (int(fields[b"num-slaves"]), int(fields[b"num-other-sentinels"])) == expected

        until(lambda: all(map(known, self.sentinels)), 60)

    def _named(self) -> set[int]:
        answers = (self._ask(s, "GET-MASTER-ADDR-BY-NAME") for s in self.sentinels)
        return {int(answer[1]) for answer in answers}

    @staticmethod
    def _ask(sentinel: Server, command: str) -> Any:
        with redis.Redis(port=sentinel.port, protocol=2) as client:
            # In two words it is a command that redis-py leaves the reply of as it is.
            return client.execute_command("SENTINEL", command, SERVICE)


@contextmanager
def sentinels(kind: str, replicas: int = 2, *options: str) -> Iterator[SentinelDeployment]:
    """A primary, so many replicas, and three sentinels that agree by two."""
    with ExitStack() as stack:
        servers = stack.enter_context(replicated(kind, replicas, *options))
        config = (
            f"sentinel monitor {SERVICE} 127.0.0.1 {servers[0].port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} 1000\n"
            f"sentinel failover-timeout {SERVICE} 5000\n"
        )
        watching = [stack.enter_context(started(kind, "--sentinel", config=config)) for _ in "123"]
        deployment = SentinelDeployment(servers, watching)
        deployment.wait_until_they_know_each_other()
        yield deployment


@dataclass
class ClusterDeployment:
    """Primaries that share the slots equally, and a replica of each of the first ones."""

    servers: list[Server]
    primaries: int

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{hosts}"

    def owner(self, slot: int) -> Server:
        """The primary that serves a slot, when all running servers agree."""
        found: set[int] = set()

        def agreed() -> bool:
            running = (s for s in self.servers if s.process and s.process.poll() is None)
            found.clear()
            found.update(_owners_port(server, slot) for server in running)
            return len(found) == 1

        until(agreed)
        (port,) = found
        return next(server for server in self.servers if server.port == port)

    def move(self, slot: int, target: Server) -> None:
        """Move a slot, key by key, as ``redis-cli --cluster reshard`` does."""
        with self.moving(slot, target):
            pass

    @contextmanager
    def moving(self, slot: int, target: Server) -> Iterator[None]:
        """Begin to move a slot; its keys move when the body is done."""
        source = self.owner(slot)
        with source.client() as giving, target.client() as taking:
            names = [c.execute_command("CLUSTER", "MYID").decode() for c in (giving, taking)]
            setslot = ("CLUSTER", "SETSLOT", slot)
            taking.execute_command(*setslot, "IMPORTING", names[0])
            giving.execute_command(*setslot, "MIGRATING", names[1])
            yield
            while found := giving.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
                giving.execute_command(
                    *("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *found)
                )
        for server in (target, source, *self.servers):
            with server.client() as client:
                client.execute_command(*setslot, "NODE", names[1])


def _owners_port(server: Server, slot: int) -> int:
    """The port of the node that serves a slot, as one node knows it; 0 when it knows none."""
    with server.client() as client:
        for first, last, node, *_ in client.execute_command("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return int(node[1])
    return 0


@contextmanager
def clustered(kind: str, primaries: int = 3, replicas: int = 1) -> Iterator[ClusterDeployment]:
    """A cluster whose nodes know each other and serve all slots."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                started(
                    kind,
                    *("--cluster-enabled", "yes", "--cluster-node-timeout", "1000"),
                    *("--cluster-port", str(free_port()), *_REPLICATION),
                )
            )
            for _ in range(primaries + replicas)
        ]
        clients = [stack.enter_context(server.client()) for server in servers]
        bounds = [16384 * number // primaries for number in range(primaries + 1)]
        for number, client in enumerate(clients):
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < primaries:
                first, last = bounds[number], bounds[number + 1] - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
        for server in servers[1:]:
            bus = int(server.options[server.options.index("--cluster-port") + 1])
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
        until(lambda: all(map(_knows_all(len(servers)), clients)), 60)
        for number, client in enumerate(clients[primaries:]):
            leader = clients[number].execute_command("CLUSTER", "MYID")
            client.execute_command("CLUSTER", "REPLICATE", leader)
        until(lambda: all(map(_is_ok, clients)), 60)
        until(lambda: all(online_replicas(server) for server in servers[:replicas]))
        yield ClusterDeployment(servers, primaries)


def _info(client: redis.Redis) -> dict[str, str]:
    text = client.execute_command("CLUSTER", "INFO").decode()
    return dict(line.split(":", 1) for line in text.split())


def _knows_all(nodes: int) -> Any:
    return lambda client: _info(client)["cluster_known_nodes"] == str(nodes)


def _is_ok(client: redis.Redis) -> bool:
    return _info(client)["cluster_state"] == "ok"
