"""Every solver that takes part, by name; ours first."""

from __future__ import annotations

from benchmarks.peers import own, skglm_peers, sklearn_peers
from benchmarks.peers.base import Fitted, Peer

_PEERS: list[Peer] = [*own.PEERS, *skglm_peers.PEERS, *sklearn_peers.PEERS]
ALL = {peer.name: peer for peer in _PEERS}

__all__ = ["ALL", "Fitted", "Peer"]
