"""Data read from disk in chunks of rows, each time they are needed."""

from proxmargin.data.datasets.dataset import Chunk, DataLostError, Dataset, Source

__all__ = ["Chunk", "DataLostError", "Dataset", "Source"]
