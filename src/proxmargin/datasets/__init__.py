"""Data read from disk in chunks of rows, each time they are needed."""

from proxmargin.datasets.chunk import Chunk, DataLostError, Source
from proxmargin.datasets.dataset import Dataset

__all__ = ["Chunk", "DataLostError", "Dataset", "Source"]
