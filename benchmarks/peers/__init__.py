"""Every solver that takes part, by name; ours first."""

from __future__ import annotations

from benchmarks.peers import (
    celer_peers,
    clarabel_peers,
    highs_peers,
    liblinear_official,
    own,
    rehline_peers,
    skglm_peers,
    sklearn_peers,
    snapml_peers,
)
from benchmarks.peers.base import Fitted, Peer, absent

_PEERS: list[Peer] = [
    *own.PEERS,
    *skglm_peers.PEERS,
    *sklearn_peers.PEERS,
    *liblinear_official.PEERS,
    *celer_peers.PEERS,
    *rehline_peers.PEERS,
    *snapml_peers.PEERS,
    *highs_peers.PEERS,
    clarabel_peers.ClarabelPeer(),
]
ALL = {peer.name: peer for peer in _PEERS}

__all__ = ["ALL", "Fitted", "Peer", "absent"]
