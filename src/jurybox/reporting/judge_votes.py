"""The votes on a stored sample, read again from the judges' replies.

A report has neither the judge of each vote, nor the reasoning of all, nor the two orders of a pair.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

import msgspec

from jurybox.calibration.observations import ObservedVote
from jurybox.engine.driver import drive_sync
from jurybox.engine.records import ExchangeRow, in_order, read_outcome, read_request
from jurybox.engine.replay import ByThread, role_of
from jurybox.judging.evaluation_report import show_vote
from jurybox.judging.flow import Answer, Flow, ModelReply, together
from jurybox.judging.formats.json_format import spoken
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.jury import Ballot, PairBallot, votes_on_pair, votes_on_response
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Seat
from jurybox.judging.safety import concerns, scan
from jurybox.reporting.stored import SampleRecord
from jurybox.sample import Sample
from jurybox.scoring.evaluate_sample import Procedure, demographic_of
from jurybox.storage.store import Store

# Words that follow the name of a response, and hardly ever the English article.
_AFTER_A_NAME: Final = (
    r"(?:(?:is|was|has|had|does|did|could|would|should)n?|do|can|will|may|might|must|won|gave|got"
    r"|and|or|nor|but|as|than|because|since|when|where|which|that|over|to|with|for|in|on|at|by|from"
    r"|also|alone|too|[a-z]+(?<![aiosu])s)\b(?!-)"
)
LETTER: Final = re.compile(
    r"\bB\b|(?<=[Rr]esponse )A\b|(?<=[Aa]nswer )A\b|\bA\b(?!\s+\w)"
    rf"|(?<=[\w,] )A\b(?=\s+[a-z])|\bA\b(?=\s+{_AFTER_A_NAME})"
)
"""What judges call the responses of a pair, the one shown first A; not the article ``A``.

At the start of a sentence, ``A`` is a response if no word follows, or a verb or conjunction does.
"""
_NO_LEAD: Final = 1e-9
_MOST_VOTES: Final = 60


class StatedVote(msgspec.Struct, frozen=True, kw_only=True):
    """What one reply of a valid vote says: on one response, or on a pair in one order.

    ``reply`` is its number among all exchanges, from 1. ``response`` is the letter of the response
    that it scores, if there are two, and ``first`` the letter of the one that was shown first, if
    two were compared. Verdicts name responses as in the run.
    """

    judge: str
    reply: int
    verdicts: Mapping[str, float | Side]
    reasoning: Mapping[str, str]
    response: str = ""
    first: str = ""
    winner: Side | None = None

    @property
    def swapped(self) -> bool:
        """Whether what the judge calls A is response B of the run."""
        return self.first == "B"


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation, and the votes that came with it, each with its verdict."""

    reasoning: str
    votes: list[tuple[StatedVote, str]]

    @property
    def groups(self) -> list[tuple[StatedVote, str, list[int]]]:
        """The first of each judge's equal votes, its verdict, and their replies."""
        found: dict[tuple[str, bool, str], tuple[StatedVote, str, list[int]]] = {}
        for vote, verdict in self.votes:
            same = found.setdefault((vote.judge, vote.swapped, verdict), (vote, verdict, []))
            same[2].append(vote.reply)
        return [*found.values()]

    @property
    def swapped(self) -> bool:
        """Whether what this explanation calls A is response B of the run."""
        return all(vote.swapped for vote, _ in self.votes)

    @property
    def in_words(self) -> str:
        """The judges with their verdicts; equal votes of a judge are counted."""
        return "; ".join(
            f"{vote.judge}{', shown swapped' if vote.swapped else ''}: {verdict}"
            + (f" ({len(replies)} votes)" if len(replies) > 1 else "")
            for vote, verdict, replies in self.groups
        )


def opinions_of(votes: Iterable[StatedVote]) -> dict[tuple[str, str], list[Opinion]]:
    """Return the distinct explanations by response (empty if one was judged) and criterion.

    The most common come first, and the winners of a pair are under an empty criterion. Equal words
    about A or B are distinct if they are about different responses.
    """
    found: dict[tuple[str, str], dict[tuple[str, bool], Opinion]] = {}
    for vote in votes:
        won: tuple[tuple[str, Side], ...] = () if vote.winner is None else (("", vote.winner),)
        for name, verdict in (*won, *vote.verdicts.items()):
            why = vote.reasoning.get(name, "")
            key = why, vote.swapped and bool(re.search(r"\b[AB]\b", why))
            same = found.setdefault((vote.response, name), {})
            shown = show_vote(verdict)
            shown = f"prefers {shown}" if vote.first and shown != "tie" else shown
            same.setdefault(key, Opinion(reasoning=why, votes=[])).votes.append((vote, shown))
    return {
        about: sorted(opinions.values(), key=lambda each: -len(each.votes))
        for about, opinions in found.items()
    }


def votes_on(procedure: Procedure, record: SampleRecord) -> list[StatedVote]:
    """Return what the replies of the first valid votes say, without unreadable replies."""
    if record.report is None or record.result.judge_fallback:
        return []
    return list(islice(_votes_on(procedure, record), _MOST_VOTES))


def _votes_on(procedure: Procedure, record: SampleRecord) -> Iterator[StatedVote]:
    judged = [each for each in enumerate(record.exchanges, start=1) if role_of(each[1]) == "judge"]
    answers = ByThread(row for _, row in judged)
    numbers = {
        id(outcome): number for outcome, (number, _) in zip(answers.outcomes, judged, strict=True)
    }
    procedure = procedure.overlays.get(demographic_of(record.inputs) or "", procedure)
    for letter, seat, ballot in _ballots(procedure, record.sample, answers):
        if isinstance(ballot, Answer):
            yield StatedVote(
                judge=seat.judge,
                reply=numbers[id(ballot.replies[-1])],
                verdicts=ballot.value.scores,
                reasoning=ballot.value.remarks.reasoning,
                response=letter,
            )
        elif isinstance(ballot, PairVote):
            # A judge that is asked for evidence has one reading of both orders.
            orders = {"A": ballot.first, "B": ballot.second}
            for first, said in orders.items() if not seat.gives_evidence else [("", ballot.first)]:
                last = ballot.straight if first == "A" else ballot.replies[-1]
                yield StatedVote(
                    judge=seat.judge,
                    reply=numbers[id(last)],
                    verdicts=said.preferences,
                    reasoning=said.remarks.reasoning,
                    first=first,
                    winner=said.winner,
                )


def _ballots(
    procedure: Procedure, sample: Sample, answers: ByThread
) -> Iterator[tuple[str, Seat, Ballot | PairBallot]]:
    """Yield each vote, with the letter of the response that it scores if there are two."""
    judging, other = procedure.judging, sample.response_b
    panel = judging.panel(procedure.judges, procedure.votes)
    letters = [""] if other is None or sample.reference is None else ["A", "B"]
    flows: list[Flow[Sequence[Ballot | PairBallot]]]
    if other is not None and sample.reference is None:
        flows = [votes_on_pair(judging, sample, panel)]
    else:
        texts = [each.text for each in (sample.response, other) if each is not None]
        flows = [votes_on_response(judging, sample, text, panel) for text in texts]
    for letter, ballots in zip(letters, drive_sync(together(*flows), answers), strict=True):
        # A jury that was decided early has fewer votes than seats.
        for seat, ballot in zip(panel.seats, ballots, strict=False):
            yield letter, seat, ballot


def warnings_of(record: SampleRecord, most: int) -> dict[tuple[str, str], dict[str, list[int]]]:
    """Return which replies of each judge have a safety finding, by its category and quote."""
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    findings = () if record.report is None else record.report.safety_findings
    wanted = {(each.category, each.quote) for each in findings}
    for number, row in enumerate(record.exchanges[:most] if wanted else (), start=1):
        outcome = read_outcome(row)
        if role_of(row) == "judge" and isinstance(outcome, ModelReply):
            judge, texts = read_request(row).model, dict.fromkeys(spoken(outcome.text))
            every = (
                each for text in texts for each in (*scan(text, judge=True), *concerns([text]))
            )
            for key in wanted.intersection((each.category, each.quote) for each in every):
                found.setdefault(key, {}).setdefault(judge, []).append(number)
    return found


def judge_replies(exchanges: Iterable[ExchangeRow]) -> Iterator[tuple[str, str]]:
    """Yield each reply of the judges once, with the names of the judges that gave it."""
    found: dict[str, list[str]] = {}
    for each in exchanges:
        outcome = read_outcome(each)
        if each.role == "judge" and isinstance(outcome, ModelReply):
            found.setdefault(outcome.text, []).append(read_request(each).model)
    for text, judges in found.items():
        yield ", ".join(dict.fromkeys(judges)), _as_lines(text)


def _as_lines(reply: str) -> str:
    """Return a JSON reply as lines of text, without quotes and escapes; other replies as is."""
    try:
        return "\n".join(_leaves(msgspec.json.decode(reply, type=dict[str, Any])))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return reply


def _leaves(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in cast("dict[str, object]", value).items():
            yield from _leaves(each, f"{name} {key}".strip())
    elif isinstance(value, list):
        for each in cast("list[object]", value):
            yield from _leaves(each, name)
    else:
        yield f"{name}: {value}"


def stored_votes(
    procedure: Procedure, record: SampleRecord, store: Store
) -> Iterator[ObservedVote]:
    """Yield the valid votes on a stored pair; nothing for a single response."""
    row = record.row
    if record.report is None or record.responses.response_b is None:
        return
    exchanges = in_order(row, store.exchanges_of(row.run_id, row.number))
    yield from pair_votes(procedure, record.sample, exchanges)


def pair_votes(
    procedure: Procedure, sample: Sample, exchanges: Sequence[ExchangeRow]
) -> Iterator[ObservedVote]:
    """Yield the valid votes on a pair; votes that weren't requested or answered are left out."""
    answers = ByThread(each for each in exchanges if role_of(each) == "judge")
    for _, seat, vote in _ballots(procedure, sample, answers):
        if not isinstance(vote, PairVote):
            continue
        straight, swapped = vote.first.winner, vote.second.winner
        second = vote.second.preferences
        kept = {name: side == second.get(name) for name, side in vote.first.preferences.items()}
        if seat.gives_evidence:
            # Evidence judges compare responses by probability, and measure the order's effect.
            extra = vote.second.remarks.extra
            lead, bias = float(extra["lead_of_a"]), float(extra["position_bias"])
            straight, swapped, kept = _side(lead + bias), _side(lead - bias), {}
        yield ObservedVote(
            sample=sample.id,
            straight=straight,
            swapped=swapped,
            winner=vote.winner,
            kept=kept,
            judge=seat.judge,
        )


def _side(lead: float) -> Side:
    if abs(lead) < _NO_LEAD:
        return "tie"
    return "A" if lead > 0 else "B"
