"""Designs whose rows lie in blocks: on disk, on the workers of a cluster, on a device."""

from proxmargin.data.designs.blocks.base import BlockedDesign, ChunkedDesign, scanned

__all__ = ["BlockedDesign", "ChunkedDesign", "scanned"]
