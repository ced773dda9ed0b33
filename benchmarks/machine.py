"""On what the figures were measured."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from .peers.base import Peer


def load() -> str:
    """The load averages of the last 1, 5 and 15 minutes."""
    return ", ".join(f"{average:.2f}" for average in os.getloadavg())


def processor() -> str:
    """The name of the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def facts(server: str, peers: list[Peer]) -> dict[str, str]:
    found = {
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "server": f"{server}, over TCP on loopback, in a session of its own, without persistence",
        "hiredis": metadata.version("hiredis"),
    }
    for peer in peers:
        if peer.distribution:
            found[peer.distribution] = str(peer.version())
    return found


def stay_on_one_processor() -> None:
    """This process, and what it starts from now on, use one processor: else it is a matter of luck
    whether a round trip wakes another one, which takes longer than all the rest of it."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
