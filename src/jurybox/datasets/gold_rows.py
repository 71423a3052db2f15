"""People's labels in a file of their own, by sample id."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from jurybox.calibration.gold import GOLD, GOLD_WINNER, Gold, read_gold
from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.fields import FieldError, read_id
from jurybox.datasets.open_dataset import reader_of
from jurybox.datasets.row_reader import Record
from jurybox.datasets.source import open_source
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import InputError
from jurybox.rubric.scale import Scale


class GoldFile(msgspec.Struct, frozen=True, kw_only=True):
    """People's labels by sample id; ``without`` counts rows without a label."""

    origin: str
    sha256: str
    gold: Mapping[str, Gold]
    without: int = 0


def read_gold_rows(path: Path, scales: Mapping[str, Scale]) -> GoldFile:
    """Read a file of labels: ``id`` with ``gold`` or ``gold_winner``; other columns are left alone.

    Raises:
        InputError: the file can't be read, or has no label at all.
        DatasetError: a row has no id, two have the same, or a label can't be one.

    """
    read = reader_of(path)
    findings = Findings()
    labels = _Labels(scales, findings)
    with open_source(path) as source, contextlib.suppress(TooManyError):
        for line, record in read(source, findings, lambda _: None):
            labels.add(line, record)
    faults = findings.in_order()
    if faults:
        raise DatasetError(source.origin, faults)
    if not labels.gold:
        problem = f"no row has `{GOLD}` or `{GOLD_WINNER}`"
        raise InputError(problem, 'add what people say, as `{"gold": {"clarity": 4}}`', str(path))
    return GoldFile(
        origin=source.origin, sha256=source.sha256, gold=labels.gold, without=labels.without
    )


class _Labels:
    """Collects labels, and notes what is wrong with others."""

    def __init__(self, scales: Mapping[str, Scale], findings: Findings) -> None:
        self.gold: dict[str, Gold] = {}
        self.without = 0
        self._scales = scales
        self._findings = findings
        self._lines: dict[str, int] = {}

    def add(self, line: int, record: Record) -> None:
        try:
            row_id = None if record.get("id") is None else read_id(record["id"], "id")
            gold = read_gold(record, self._scales)
        except FieldError as error:
            self._findings.add(Place(line), error.code, error.problem, error.hint)
            return
        except InputError as error:
            self._findings.add(Place(line), "bad-gold", error.problem, error.hint)
            return
        if gold is None:
            self.without += 1
        elif row_id is None:
            hint = "give the id of the sample that it is of"
            self._findings.add(Place(line), "missing-field", "the label has no `id`", hint)
        elif row_id in self._lines:
            problem = f"the id `{row_id}` is given twice (first on line {self._lines[row_id]})"
            hint = "give several people's labels in one row, as a list or by their names"
            self._findings.add(Place(line), "duplicate-id", problem, hint)
        else:
            self._lines[row_id] = line
            self.gold[row_id] = gold
