"""Which samples belong together: several rows from one conversation are not independent."""

from collections.abc import Hashable

import msgspec

from jurybox.engine.records import SampleRow
from jurybox.errors import InputError
from jurybox.sample import Row

_ROW = msgspec.json.Decoder(Row)


class Clustering:
    """Tells the clusters of samples by a field, or by their ids where no field is named.

    A sample in several repeats is one cluster, whatever the field says of others. A sample without
    the field stands for itself.
    """

    def __init__(self, field: str | None = None) -> None:
        self._field = field
        self._found = False
        self._repeated = False

    def of(self, sample: SampleRow) -> Hashable:
        """Return what a sample belongs to."""
        self._repeated = self._repeated or sample.repeat > 0
        if self._field is None:
            return sample.sample_id
        value = _value(_ROW.decode(sample.inputs), self._field)
        if value is None:
            return ("", sample.sample_id)
        self._found = True
        return value

    @property
    def needed(self) -> bool:
        """Whether any two samples that came by may belong together."""
        return self._field is not None or self._repeated

    def check(self, where: str) -> None:
        """See that the field was met at all.

        Raises:
            InputError: no sample has it.

        """
        if self._field is not None and not self._found:
            problem = f"no sample has a field `{self._field}` to cluster by"
            hint = "name `scenario` or a column that the dataset carries beside the known ones"
            raise InputError(problem, hint, where)


def _value(row: Row, field: str) -> str | None:
    if field == "scenario":
        return row.scenario
    value = row.metadata.get(field)
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="deterministic").decode()
