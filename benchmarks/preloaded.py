"""Imports of the server that forks the processes: the workloads, the peers and their modules."""

from . import workloads as workloads
from .peers import PEERS

for _peer in PEERS.values():
    _peer.missing()
