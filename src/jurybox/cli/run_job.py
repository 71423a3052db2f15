"""Working on a run before somebody's eyes: what is said before, meanwhile and after."""

from collections.abc import Callable

from jurybox.app.job import Job, OnProgress, OnStart
from jurybox.app.run_suite import RunResult
from jurybox.cli.exits import INCOMPLETE, fail
from jurybox.cli.output import harmless, say
from jurybox.cli.progress import displayed
from jurybox.cli.result import end
from jurybox.cli.signals import stop_on_signals
from jurybox.cli.stores import resume_line, shown_store
from jurybox.engine.plan import Plan, read_plan
from jurybox.engine.ports import Store
from jurybox.errors import IncompleteError

Start = Callable[[OnProgress, OnStart], RunResult]


def work(start: Start, store: Store, store_url: str | None, *, as_json: bool) -> int:
    """Start or go on with a run, show how it goes, print how it ended; return the exit code."""
    ended = attempt(start, store_url)
    return INCOMPLETE if ended is None else end(ended, store, store_url, as_json=as_json)


def attempt(start: Start, store_url: str | None) -> RunResult | None:
    """Start or go on with a run, and show how it goes; None, and told, where the store failed."""
    begun: list[str] = []
    try:
        return watched(start, store_url, begun)
    except IncompleteError as error:
        fail(harmless(str(error)), INCOMPLETE)
        for run_id in begun:
            say(resume_line(run_id, store_url))
        return None


def watched(start: Start, store_url: str | None, begun: list[str] | None = None) -> RunResult:
    """Start or go on with a run, and show how it goes; its id is added to ``begun``."""
    with displayed() as display:

        def on_start(job: Job) -> None:
            plan = read_plan(job.row.plan)
            if begun is not None:
                begun.append(job.row.id)
            say(f"run {job.row.id}: {described(plan)}, kept in {shown_store(store_url)}")
            job.on_notice = lambda text: say(f"warning: {harmless(text)}")
            display.begin(plan.samples)
            stop_on_signals(job)

        return start(display.show, on_start)


def described(plan: Plan) -> str:
    """Return what a run will do, in a few words."""
    count = f"{plan.samples} {'sample' if plan.samples == 1 else 'samples'}"
    if plan.repeats > 1:
        count = f"{count} ({plan.dataset.used} rows, {plan.repeats} times)"
    answered = [] if plan.target is None else [f"answered by {plan.target.model}"]
    judges = (
        f"judged by {', '.join(plan.judges)}" if plan.judges else "scored by the rubric's rules"
    )
    batched = ["in batches"] if plan.batch else []
    return ", ".join((count, *answered, judges, *batched))
