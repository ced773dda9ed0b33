"""What the server that forks the processes imports once: the workloads, the peers and theirs."""

from . import workloads as workloads
from .peers import PEERS

for _peer in PEERS.values():
    _peer.missing()
