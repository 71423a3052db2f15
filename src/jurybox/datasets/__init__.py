"""Datasets: files of samples, read one row at a time."""

from jurybox.datasets.dataset import Dataset, DatasetError, Survey, survey
from jurybox.datasets.fields import FIELDS
from jurybox.datasets.open_dataset import open_dataset

__all__ = ["FIELDS", "Dataset", "DatasetError", "Survey", "open_dataset", "survey"]
