"""Evaluate one response, or a pair, from names and texts to a report."""

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jurybox.app.event_loop import blocking
from jurybox.errors import InputError
from jurybox.text_format import listed
from jurybox.wiring import (
    ModelBuilder,
    embedded_judge,
    load_rubric,
    no_judge_error,
    read_settings,
)

if TYPE_CHECKING:
    from jurybox.engine.driver import OnExchange
    from jurybox.models.function import Function
    from jurybox.rubric import Rubric
    from jurybox.sample import Turn
    from jurybox.scoring.by_rules import SingleReport

CHECKLIST = "bias-awareness"
# Seconds: a user waits for a single report, and sees no progress meanwhile.
_PATIENCE = 30.0


async def aevaluate(  # noqa: PLR0913 - the parts of an evaluation, all by keyword
    *,
    rubric: "str | os.PathLike[str] | Rubric",
    task: str,
    response: str,
    response_b: str | None = None,
    reference: str | None = None,
    context: str | None = None,
    messages: "Sequence[Turn]" = (),
    judges: "str | Function | Sequence[str | Function]" = (),
    votes: int | None = None,
    latency_e2e_ms: float | None = None,
    latency_model_ms: float | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    timed_out: bool = False,
    base_url: str | None = None,
    allow_version_drift: bool = False,
    on_exchange: "OnExchange | None" = None,
    on_default_judge: Callable[[str], object] | None = None,
) -> "SingleReport":
    """Judge one response, or compare two, and return the report.

    Where the rubric has rules for every criterion, they score a single response and no judge is
    needed; the verdict of judges is then reported next to theirs (`RulesReport`).

    Example:
        >>> from jurybox import evaluate
        >>> report = evaluate(rubric="companion", task="I feel low.", response="I'm sorry to hear.")
        >>> report.method
        'rules'

    Args:
        rubric: a name, a path, or a rubric.
        task: the request to the system under test.
        response: its response.
        response_b: another response, to compare the two.
        reference: the correct answer; every response is then scored against it.
        context: the material that the system under test was given.
        messages: the conversation before the task.
        judges: models such as ``openai/gpt-4.1-2025-04-14``, or with an endpoint of their own
            ``{model: openai/NAME, base_url: http://localhost:8000/v1}``, or functions of yours that
            take the prompt and return the reply. Without any, the rubric's
            rules score if they can, else the embedded judge if it is installed.
        votes: the number of votes, the rubric's by default; raised until every judge gives the
            same number.
        latency_e2e_ms: how long the response took; without it, a rule about it doesn't pass.
        latency_model_ms: how long the model alone took.
        input_tokens: the tokens of the request.
        output_tokens: the tokens of the response.
        timed_out: whether the response came too late; it is not judged then, and fails.
        base_url: the address of an OpenAI-compatible endpoint, for judges that name none.
        allow_version_drift: accept another version of a model than its name states.
        on_exchange: is called with every request and its outcome.
        on_default_judge: is called with the embedded judge's name where no judge was named.

    Raises:
        InputError: an argument can't be used.
        RubricError: the rubric document has faults.
        IncompleteError: another version of a judge answered than its name states.

    """
    from jurybox.app.model_session import checked_route
    from jurybox.engine.driver import drive
    from jurybox.judging.protocol import Judging
    from jurybox.models.function import function_names
    from jurybox.rubric import Rubric
    from jurybox.sample import Response, Row, Timing, Usage
    from jurybox.scoring.by_rules import single_report
    from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample
    from jurybox.scoring.rules import compile_rules
    from jurybox.suite.model_spec import ModelSpec, model_option

    named = [judges] if isinstance(judges, str) or callable(judges) else judges
    specs = [model_option(each) for each in function_names(named)]
    names = [spec.model for spec in specs]
    used = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
    count = used.protocol.votes if votes is None else votes
    if reference is not None and not reference.strip():
        raise InputError("the reference answer is empty", "give one, or leave it out")
    timing = Timing(
        latency_e2e_ms=latency_e2e_ms, latency_model_ms=latency_model_ms, timed_out=timed_out
    )
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    latencies = {"latency_e2e_ms": latency_e2e_ms, "latency_model_ms": latency_model_ms}
    for name, latency in latencies.items():
        if latency is not None and not 0 <= latency < math.inf:
            raise InputError(f"{latency} is no time in milliseconds", "give 0 or more", name)
    given = Response(text=response, timing=timing, usage=usage, error=_emptiness(response))
    row = Row(
        id="",
        task=task,
        response=given,
        response_b=None
        if response_b is None
        else Response(text=response_b, error=_emptiness(response_b)),
        reference=reference,
        context=context,
        messages=tuple(messages),
    )
    rules = compile_rules(used) if response_b is None else None
    ruled = rules is not None and missing_rules(used) is None
    announce = None if names else on_default_judge
    if not names and given.answered and not ruled:
        names = [_default_judge(used, pair=response_b is not None)]
        specs = [ModelSpec(model=names[0])]
    checklist = load_rubric(CHECKLIST)
    stop = used.protocol.stop_when_decided
    judging = Judging(rubric=used, checklist=checklist, stop_when_decided=stop)
    procedure = Procedure(judging=judging, judges=tuple(names), votes=count, rules=rules)
    builder = ModelBuilder(read_settings(), base_url)
    models = {spec.model: builder.build(spec) for spec in specs}
    if announce is not None and names:
        announce(names[0])
    try:
        flow = evaluate_sample(procedure, row)
        call = checked_route(
            models, specs, allow_version_drift=allow_version_drift, patience=_PATIENCE
        )
        outcome = await drive(flow, call, on_exchange=on_exchange)
    finally:
        for model in models.values():
            await model.aclose()
    sample, report = row.sample(given), outcome.report
    return single_report(used, sample, report, outcome.automated, outcome.result)


evaluate = blocking("evaluate", aevaluate)


def _emptiness(text: str) -> str | None:
    """Return why there is nothing to judge; None where there is (D2)."""
    from jurybox.sample import EMPTY

    return None if text.strip() else EMPTY


def _default_judge(rubric: "Rubric", *, pair: bool) -> str:
    """Return the embedded judge; refuse where it isn't installed."""
    name = embedded_judge()
    if name is not None:
        return name
    problem, hint = "no judge was given", "name a model, such as `openai/gpt-4.1-2025-04-14`"
    if any(criterion.rules is not None for criterion in rubric.criteria):
        why = missing_rules(rubric)
        if pair:
            why = f"`{rubric.id}` has rules that score one response at a time"
        problem = f"{problem}, and {why}"
    raise no_judge_error(problem, hint)


def missing_rules(rubric: "Rubric") -> str | None:
    """Return why the rubric's rules can't score a response by themselves; None where they can."""
    counting = [each for each in rubric.criteria if each.weight]
    names = [each.id for each in counting if each.rules is None]
    if not names:
        return None
    if len(names) == len(counting):
        return f"`{rubric.id}` has no rules that score by themselves"
    verb = "has" if len(names) == 1 else "have"
    return f"{listed(names)} of `{rubric.id}` {verb} no rules that score by themselves"
