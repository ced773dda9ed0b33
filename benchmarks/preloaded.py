"""What the server that forks the processes imports once: all peers that are installed."""

from .peers import PEERS

for _peer in PEERS.values():
    _peer.missing()
