"""A run as Python code and notebooks use it: its results, its samples, a table of them."""

from collections.abc import Iterable
from contextlib import closing
from html import escape
from importlib import import_module
from typing import Any

import msgspec

from jurybox.app.view_run import view_run
from jurybox.documents.numbers import exact, shown
from jurybox.errors import InputError
from jurybox.reporting.export_rows import exported_rows
from jurybox.reporting.metric_text import metrics_of
from jurybox.reporting.stored import SampleRecord
from jurybox.reporting.view import RunView
from jurybox.wiring import find_run, open_run_store


class Run(RunView, frozen=True, kw_only=True):
    """A run and all that follows from it; its samples are read from the store when asked for."""

    store: str | None = None

    @classmethod
    def of(cls, view: RunView, store: str | None) -> "Run":
        """Return the run of a view."""
        return cls(**msgspec.structs.asdict(view), store=store)

    @property
    def samples(self) -> list[SampleRecord]:
        """The samples in the order of the dataset, each with its scores, report and reasons.

        Raises:
            IncompleteError: the run can't be read.

        """
        with closing(open_run_store(self.store)) as store:
            return [SampleRecord(row) for row in store.samples(self.run_id)]

    def to_dataframe(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the samples as a pandas DataFrame with the columns of `jurybox export`.

        Raises:
            InputError: pandas isn't installed.
            IncompleteError: the run can't be read.

        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError:
            raise InputError("a table needs pandas", "install it: pip install pandas") from None
        with closing(open_run_store(self.store)) as store:
            return pandas.DataFrame(list(exported_rows(store, find_run(store, self.run_id))))

    def _repr_html_(self) -> str:
        """Return the verdict, the gates and the metrics, as a notebook shows them."""
        head = f"{self.suite}: {'passed' if self.passed else 'not passed'}"
        gates = [(each.gate, exact(each.value), _yes(each.passed)) for each in self.gates]
        metrics = [(each.name, shown(each.value)) for each in metrics_of(self.summary, self.rubric)]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        tables = _table(("gate", "value", "passes"), gates) + _table(("metric", "value"), metrics)
        return f"<h4>{escape(head)}</h4><p>run {escape(self.run_id)}</p>{notes}{tables}"


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    lines = [f"<th>{escape(name)}</th>" for name in head]
    body = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    if not body:
        return ""
    return f"<table><tr>{''.join(lines)}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"


def load_run(name: str = "last", *, store: str | None = None) -> Run:
    """Return a stored run by its id, its name, a tag, or as ``last`` or ``last~1``.

    Example:
        >>> import jurybox
        >>> run = jurybox.load_run("last")  # doctest: +SKIP
        >>> [sample.id for sample in run.samples if not sample.passed]  # doctest: +SKIP
        ['q7']

    Raises:
        InputError: there is no such run.
        IncompleteError: it can't be read.

    """
    with closing(open_run_store(store)) as opened:
        return Run.of(view_run(find_run(opened, name), opened), store)
