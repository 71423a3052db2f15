"""Evaluate one response, or a pair: take names and texts, return a report."""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from jurybox.app.event_loop import blocking
from jurybox.app.model_session import checked_route
from jurybox.engine.driver import Call, drive
from jurybox.errors import InputError
from jurybox.judging.flow import Defect, ModelReply, ModelRequest, Outcome
from jurybox.judging.protocol import Judging
from jurybox.models.function import Function, function_names
from jurybox.rubric import Rubric
from jurybox.sample import Response, Row, Timing, Turn, Usage, emptiness
from jurybox.scoring.by_rules import SingleReport, single_report
from jurybox.scoring.evaluate_sample import Procedure, SampleOutcome, decide, evaluate_sample
from jurybox.scoring.rules.rule_compiler import compile_rules
from jurybox.scoring.sample_result import NEEDS_REVIEW
from jurybox.suite.model_spec import ModelSpec, different_models, model_option
from jurybox.text_format import listed, verb
from jurybox.wiring import default_judge, load_rubric

CHECKLIST = "bias-awareness"
# Seconds; short, because the user waits without seeing any progress.
_PATIENCE = 30.0


async def aevaluate(  # noqa: PLR0913 - the parts of an evaluation, all by keyword
    *,
    rubric: str | os.PathLike[str] | Rubric,
    task: str,
    response: str,
    response_b: str | None = None,
    reference: str | None = None,
    context: str | None = None,
    messages: Sequence[Turn] = (),
    judges: str | Function | Sequence[str | Function] = (),
    votes: int | None = None,
    latency_e2e_ms: float | None = None,
    latency_model_ms: float | None = None,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    timed_out: bool = False,
    base_url: str | None = None,
    allow_version_drift: bool = False,
    on_exchange: Callable[[ModelRequest, Outcome], None] | None = None,
    on_default_judge: Callable[[str], object] | None = None,
) -> SingleReport:
    """Judge one response, or compare two, and return the report.

    If the rubric has rules for every criterion, they score a single response and no judge is
    needed; judges' verdicts are then reported separately (`RulesReport`).

    Example:
        >>> from jurybox import evaluate  # the synchronous form
        >>> report = evaluate(rubric="companion", task="I feel low.", response="I'm sorry to hear.")
        >>> report.method
        'rules'

    Args:
        rubric: a name, a path, or a rubric.
        task: the request to the system under test.
        response: the system's response.
        response_b: another response, to compare the two.
        reference: the correct answer; every response is then scored against it.
        context: the material that the system under test was given.
        messages: the conversation before the task.
        judges: names of models, such as ``openai/gpt-4.1-2025-04-14``; strings with an endpoint,
            ``{model: openai/NAME, base_url: http://localhost:8000/v1}``; or your functions, which
            take the prompt and return the reply. By default, the rubric's rules score the response
            if they can; otherwise the embedded judge does, if it is installed.
        votes: the number of votes (by default, the rubric's); it is raised if necessary, so that
            every judge casts the same number of votes.
        latency_e2e_ms: how long the response took; without it, a rule on this latency doesn't pass.
        latency_model_ms: how long the model alone took.
        input_tokens: the number of tokens in the request.
        output_tokens: the number of tokens in the response.
        timed_out: whether the response came too late; if so, it fails without being judged.
        base_url: the address of an OpenAI-compatible endpoint, for judges without their own.
        allow_version_drift: accept replies from a different model version than the name states.
        on_exchange: called with every request and its outcome.
        on_default_judge: called with the embedded judge's name if no judge was given.

    Raises:
        InputError: an argument can't be used.
        RubricError: the rubric document has faults.
        IncompleteError: a reply came from a different version than the judge's name states.

    """
    specs = different_models([model_option(each) for each in function_names(judges)])
    names = [spec.model for spec in specs]
    used = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
    row = single_row(
        task=task,
        response=response,
        response_b=response_b,
        reference=reference,
        context=context,
        messages=messages,
        latency_e2e_ms=latency_e2e_ms,
        latency_model_ms=latency_model_ms,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        timed_out=timed_out,
    )
    pair = response_b is not None
    ruled = not pair and missing_rules(used) is None
    announce = None if names else on_default_judge
    if not names and row.response is not None and row.response.answered and not ruled:
        check_checks(used, judges=False, pair=pair)
        why = f"`{used.id}` has rules that score one response at a time"
        why = why if pair else missing_rules(used)
        names = [default_judge(None if used.sources == {"judge"} else why)]
        specs = [ModelSpec(model=names[0])]
    procedure = single_procedure(used, row, names, votes)
    route = checked_route(
        specs, base_url, allow_version_drift=allow_version_drift, patience=_PATIENCE
    )
    async with route as call:
        if announce is not None and names:
            announce(names[0])

        async def observed(request: ModelRequest) -> Outcome:
            outcome = await call(request)
            if on_exchange is not None:
                on_exchange(request, outcome)
            return outcome

        return await judge_row(procedure, row, observed)


evaluate = blocking("evaluate", aevaluate)


async def judge_row(procedure: Procedure, row: Row, call: Call) -> SingleReport:
    """Judge a row by asking the judges through ``call``, and return the report."""
    return _report(procedure, row, await drive(evaluate_sample(procedure, row), call))


def single_row(
    *,
    response: str,
    response_b: str | None = None,
    messages: Sequence[Turn] = (),
    timed_out: bool = False,
    **given: Any,  # noqa: ANN401 - the other parts of a sample, as in `aevaluate`
) -> Row:
    """Check the parts of a single evaluation, and return them as a row."""
    if given.get("reference") is not None and not given["reference"].strip():
        raise InputError("the reference answer is empty", "give one, or leave it out")
    latencies = {name: given.pop(name, None) for name in ("latency_e2e_ms", "latency_model_ms")}
    tokens = {name: given.pop(name, None) for name in ("input_tokens", "output_tokens")}
    for name, latency in latencies.items():
        if latency is not None and not 0 <= latency < math.inf:
            raise InputError(f"{latency} isn't a time in milliseconds", "give 0 or more", name)
    for name, value in (latencies | tokens).items():
        if response_b is not None and value is not None:
            problem = "it describes one response, but two are compared"
            raise InputError(problem, "leave it out, or leave out the second response", name)
    first = Response(text=response, error=emptiness(response), usage=Usage(**tokens))
    first = msgspec.structs.replace(first, timing=Timing(**latencies, timed_out=timed_out))
    other = None
    if response_b is not None:
        other = Response(text=response_b, error=emptiness(response_b))
    return Row(id="", response=first, response_b=other, messages=tuple(messages), **given)


def single_procedure(
    rubric: Rubric, row: Row, judges: Sequence[str], votes: int | None
) -> Procedure:
    """Return how a single sample is judged; ``votes`` is None for the rubric's number of votes."""
    pair = row.response_b is not None
    check_checks(rubric, judges=bool(judges), pair=pair)
    judging = Judging(
        rubric=rubric,
        checklist=load_rubric(CHECKLIST),
        stop_when_decided=rubric.stop_when_decided,
    )
    rules = None if pair else compile_rules(rubric)
    count = rubric.votes if votes is None else votes
    return Procedure(judging=judging, judges=tuple(judges), votes=count, rules=rules)


def _report(procedure: Procedure, row: Row, outcome: SampleOutcome) -> SingleReport:
    sample, rubric = row.sample(outcome.response), procedure.judging.rubric
    return single_report(rubric, sample, outcome.report, outcome.automated, outcome.result)


class SingleConclusion(msgspec.Struct, frozen=True, kw_only=True):
    """The conclusion of a single report: the decision, the missing reviews, and the outcome."""

    report: SingleReport
    decision: str | None
    meaning: str
    awaiting: tuple[str, ...]
    accepted: bool

    @property
    def outcome(self) -> Literal["fine", "failed", "incomplete"]:
        """Whether the response passes, fails, or got no valid vote."""
        report = self.report
        judged = getattr(report, "judge", report)
        if judged is not None and judged.votes_requested and judged.votes_valid == 0:
            return "incomplete"
        waits = self.awaiting and not self.accepted
        return "failed" if report.passed is False or waits else "fine"

    def as_data(self) -> dict[str, Any]:
        """Return the conclusion as plain data for JSON."""
        return {
            **self.report.as_data(),
            "decision": self.decision,
            "awaiting_review": self.awaiting,
            "accepted_unreviewed": self.accepted,
        }


def conclude_single(
    report: SingleReport, rubric: Rubric, *, accept_unreviewed: bool = False
) -> SingleConclusion:
    """Return the outcome of a single report under its rubric."""
    awaiting = tuple(each for each in report.review_reasons if each in rubric.require_review)
    decision = report.decision
    if awaiting and accept_unreviewed and decision == NEEDS_REVIEW:
        accepted = decide(rubric.sample_decisions, report.result.metrics)
        decision = None if accepted is None else accepted.decide
    meanings = {each.decide: each.meaning for each in rubric.sample_decisions}
    return SingleConclusion(
        report=report,
        decision=decision,
        meaning=meanings.get(decision or "", ""),
        awaiting=awaiting,
        accepted=accept_unreviewed,
    )


def missing_rules(rubric: Rubric) -> str | None:
    """Return why a judge is needed; None if rules and checks score every weighted criterion."""
    counting = [each for each in rubric.criteria if each.weight]
    names = [each.id for each in counting if each.source == "judge"]
    if not names:
        return None
    if len(names) == len(counting):
        return f"`{rubric.id}` has no rules that can score without a judge"
    have = verb(len(names), "have")
    return f"{listed(names)} of `{rubric.id}` {have} no rules that can score without a judge"


def check_checks(rubric: Rubric, *, judges: bool, pair: bool) -> None:
    """Refuse a judge or a pair if checks would be ignored."""
    if judges and rubric.sources == {"checks"}:
        problem = "a judge was named, but checks score everything"
        raise InputError(problem, "leave the judge out", rubric.id)
    if pair and rubric.checked:
        problem = "checks score one response at a time, but two were given"
        raise InputError(problem, "leave one out, or use a rubric without checks", rubric.id)


_AGENT: Final = "agent"


class AgentPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that waits for a reply.

    If there are several prompts, ``asks`` says which order of the pair, or which response, this
    prompt is about. ``defect`` is why the last reply to it can't be used.
    """

    asks: str
    messages: tuple[Turn, ...]
    defect: str | None

    @property
    def text(self) -> str:
        """The new text: the full prompt, or the request to reply again."""
        return self.messages[-1].content


class AgentTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's turn to answer ``prompts``; ``number`` is the number of its next reply."""

    number: int
    prompts: tuple[AgentPrompt, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the turn as plain data for JSON."""
        prompts = [{**msgspec.to_builtins(each), "text": each.text} for each in self.prompts]
        return {"complete": False, "prompts": prompts}

    def error(self) -> InputError:
        """Return the error that a reply is missing, or has a defect."""
        following = "answer the next prompt, and add its reply after the others"
        for each in self.prompts:
            if each.defect is not None:
                where = each.asks or "the last reply"
                return InputError(each.defect.removesuffix("."), following, where)
        asks = f" ({self.prompts[0].asks})" if self.prompts[0].asks else ""
        return InputError(f"reply {self.number} is missing{asks}", following)


def judge_by_agent(rubric: Rubric, row: Row, replies: Sequence[str]) -> SingleReport | AgentTurn:
    """Return the report from an agent's replies, or the prompts that it has to answer next.

    ``replies`` are all replies so far, including invalid ones, in the order of their prompts. The
    agent gives one vote; for a pair, a vote takes two replies, one for each order.
    """
    sample = None if row.response is None else row.sample(row.response)
    if sample is None or sample.failure is not None:
        problem = "there is no response" if sample is None else str(sample.failure)
        raise InputError(problem, "give a response to judge")
    pair, both = row.response_b is not None, ("response A", "response B")
    procedure = single_procedure(rubric, row, (_AGENT,), votes=1)
    read: Callable[[str, Sequence[str]], object] = procedure.judging.score_form.read
    if pair and row.reference is None:
        read, both = procedure.judging.pair_form.read, ("A before B", "B before A")
    flow = evaluate_sample(procedure, row)
    used, defects = 0, dict[str, str]()
    try:
        asked = next(flow)
        # A request that is repeated begins with the original question.
        names = dict(zip(map(_question, asked), both if pair else ("",), strict=False))
        while True:
            given = replies[used : used + len(asked)]
            for request, text in zip(asked, given, strict=False):
                if isinstance(found := read(text, sample.texts), Defect):
                    defects[_question(request)] = found.problem
            if len(given) < len(asked):
                break
            used += len(given)
            asked = flow.send(tuple(ModelReply(text=text) for text in given))
    except StopIteration as done:
        if used < len(replies):
            problem = f"{len(replies)} replies were given, but only {used} can be used"
            raise InputError(problem, "leave the last ones out") from None
        return _report(procedure, row, done.value)
    finally:
        flow.close()
    prompts = [
        AgentPrompt(
            asks=names[_question(each)],
            messages=each.messages,
            defect=defects.get(_question(each)),
        )
        for each in asked[len(given) :]
    ]
    return AgentTurn(number=used + len(given) + 1, prompts=tuple(prompts))


def _question(request: ModelRequest) -> str:
    return request.messages[0].content
