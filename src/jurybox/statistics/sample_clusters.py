"""Which samples belong together: several rows from one conversation are not independent."""

from collections.abc import Hashable

import msgspec

from jurybox.errors import InputError
from jurybox.sample import Row

_ROW = msgspec.json.Decoder(Row)


class SampleClusters:
    """Finds the clusters of samples by a field, or by their ids where no field is named.

    A sample in several repeats is one cluster. A sample without the field is a cluster of its own.
    """

    def __init__(self, field: str | None = None) -> None:
        """Take the name of the field: ``scenario``, or a key of the row's metadata."""
        self._field = field
        self._found = False
        self._repeated = False

    def of(self, sample_id: str, repeat: int, inputs: str) -> Hashable:
        """Return what a sample belongs to; ``inputs`` is its row of the dataset, as JSON."""
        self._repeated = self._repeated or repeat > 0
        if self._field is None:
            return sample_id
        row = _ROW.decode(inputs)
        value = row.scenario if self._field == "scenario" else row.metadata.get(self._field)
        if value is None:
            return ("", sample_id)
        self._found = True
        if isinstance(value, str):
            return value
        return msgspec.json.encode(value, order="deterministic").decode()

    @property
    def needed(self) -> bool:
        """Whether any two samples seen so far may belong together."""
        return self._field is not None or self._repeated

    def check(self, where: str) -> None:
        """Refuse a field that no sample has.

        Raises:
            InputError: no sample has it.

        """
        if self._field is not None and not self._found:
            problem = f"no sample has a field `{self._field}` to cluster by"
            hint = "name `scenario` or another column of the dataset"
            raise InputError(problem, hint, where)
