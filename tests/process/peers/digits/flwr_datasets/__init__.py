"""Stands in for Flower Datasets in examples of others: every n-th digit is a client's."""

from datasets import Rows, load_dataset

from flwr_datasets.partitioner import IidPartitioner


class FederatedDataset:
    """Parts of the rows to train with."""

    def __init__(self, *, dataset: str, partitioners: dict[str, IidPartitioner]) -> None:
        self.rows, self.parts = load_dataset(dataset, split="train"), partitioners["train"].num_partitions

    def load_partition(self, number: int) -> Rows:
        """Return a client's rows."""
        return self.rows.chosen(range(number, len(self.rows), self.parts))
