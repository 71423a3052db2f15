"""Looking at a run: apart from what works on one, which takes a while to load."""

import msgspec

from jurybox.app.costs import run_cost
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.models.prices import load_prices
from jurybox.reporting.at_work import is_at_work
from jurybox.reporting.stored import plan_of
from jurybox.reporting.view import RunView, finished_view, unfinished_view
from jurybox.wiring import read_settings


def view_run(row: RunRow, store: Store) -> RunView:
    """Return the view of a run, finished or not.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    if row.status == "finished":
        return finished_view(row)
    working = is_worked_on(row, store)
    current = store.run(row.id) or row
    if current.status == "finished":
        return finished_view(current)
    return view_unfinished(current, store, working=working)


def is_worked_on(row: RunRow, store: Store) -> bool:
    """Say whether a process is at work on a run."""
    # A store that can only be read can't be claimed, so nobody works on its runs either.
    return is_at_work(row, store) is True


def view_unfinished(row: RunRow, store: Store, *, working: bool) -> RunView:
    """Return the view of a run that isn't finished, with what it has cost so far.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    return with_cost(unfinished_view(row, store, working=working), row)


def with_cost(view: RunView, row: RunRow) -> RunView:
    """Return the view with what the run has cost so far.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    prices = load_prices(read_settings().prices)
    cost = run_cost(view.conclusion.uses, prices, batched=plan_of(row).batch)
    return msgspec.structs.replace(view, cost=cost)
