"""The peers that are measured. To add one: a module with its adapter, and a line here."""

from __future__ import annotations

from .base import Peer
from .faster_fifo_ring import FasterFifo
from .hotqueue_list import HotQueueList
from .huey_storage import HueyStorage
from .kombu_simple import KombuSimpleQueue
from .manager_queue import ManagerQueue
from .multiprocessing_queue import MultiprocessingQueue
from .persist_queue import PersistQueue
from .pressure import (
    Pressure,
    PressureBatches,
    PressureBuffered,
    PressureDefault,
    PressureUnsigned,
)
from .redis_py import RedisPy, RedisPyBatches, RedisPyWithoutWaiting
from .rq_queue import RqQueue
from .yarqueue_fifo import Yarqueue

PEERS: dict[str, Peer] = {
    peer.key: peer
    for peer in (
        Pressure("pressure", "pressure_mp"),
        PressureDefault("pressure-default", "pressure_mp, `Queue()`"),
        PressureUnsigned("pressure-unsigned", "pressure_mp, `Queue()`, not signed"),
        PressureBatches("pressure-500", "pressure_mp, `put_many`/`get_many` of 500", 500),
        PressureBuffered("pressure-buffered", "pressure_mp, `buffering=4000`"),
        MultiprocessingQueue("mp-queue", "multiprocessing.Queue"),
        ManagerQueue("manager", "BaseManager queue over TCP"),
        RedisPy("redis-brpop", "redis-py LPUSH/BRPOP"),
        RedisPyWithoutWaiting("redis-rpop", "redis-py LPUSH/RPOP"),
        RedisPyBatches("redis-100", "redis-py LPUSH/RPOP of 100", 100),
        RedisPyBatches("redis-500", "redis-py LPUSH/RPOP of 500", 500),
        KombuSimpleQueue("kombu", "kombu SimpleQueue"),
        HotQueueList("hotqueue", "hotqueue"),
        HueyStorage("huey", "huey's RedisStorage"),
        RqQueue("rq", "rq"),
        Yarqueue("yarqueue", "yarqueue"),
        FasterFifo("faster-fifo", "faster-fifo"),
        FasterFifo("faster-fifo-100", "faster-fifo, batches of 100", 100),
        PersistQueue("persist-queue", "persist-queue"),
    )
}
