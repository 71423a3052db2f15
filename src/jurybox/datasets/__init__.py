"""Datasets: files of samples, read one row at a time and never whole."""

from jurybox.datasets.columns import ROW_FIELDS
from jurybox.datasets.dataset import Dataset, DatasetError, Survey
from jurybox.datasets.opening import open_dataset
from jurybox.datasets.surveying import survey

__all__ = ["ROW_FIELDS", "Dataset", "DatasetError", "Survey", "open_dataset", "survey"]
