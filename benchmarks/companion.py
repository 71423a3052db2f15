"""Measures the companion rubrics: how far their scores agree with people, and how fast they are.

Agreement is Spearman's rank correlation with the human ratings of Topical-Chat responses (UniEval's
copy). The rules of companion-plus were tuned on the dialogues with odd numbers; the table is about
the even ones. Intervals come from drawing whole dialogues again, because the six responses of a
dialogue share their context. Which criterion is held against which human scale is stated below, and
was settled before the rules were written.

Speed is that of companion, beside a plain reading of the pseudo-code it was written from.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jurybox.judging.safety import scan
from jurybox.rubric import Rubric, parse_rubric
from jurybox.scoring.rules.rule_compiler import CompiledRules, compile_rules, score_by_rules
from jurybox.wiring import rubric_files

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data" / "topicalchat_human_unieval.jsonl"
RUBRICS = ("companion", "companion-plus")
OVERALL = "overall_quality"
HELD_AGAINST = {
    "appropriateness": "understandability",
    "conversational_quality": "naturalness",
    "helpfulness": "groundedness",
    "emotional_intelligence": "engagingness",
    "personalization_continuity": "coherence",
    OVERALL: "overall",
}
"""No human scale of this data is about trust and boundaries."""
SCALES = (
    "naturalness",
    "coherence",
    "engagingness",
    "groundedness",
    "understandability",
    "overall",
)
TUNING, HELD_OUT = 1, 0
SEED = 20250819

Row = Mapping[str, Any]
Scores = dict[str, list[float]]


# Statistics


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            result[order[place]] = (start + end) / 2
        start = end + 1
    return result


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the correlation of the ranks; 0 if one side never varies."""
    first, second = ranks(one), ranks(other)
    if len(set(first)) == 1 or len(set(second)) == 1:
        return 0.0
    return statistics.correlation(first, second)


def interval(values: Sequence[float]) -> str:
    """Return the middle 95 in 100."""
    cuts = statistics.quantiles(values, n=40, method="inclusive")
    return f"{cuts[0]:+.2f} to {cuts[-1]:+.2f}"


# Agreement


def compiled(name: str) -> CompiledRules:
    """Return the rules of a bundled rubric."""
    rules = compile_rules(rubric(name))
    if rules is None:
        raise SystemExit(f"{name} has no rules")
    return rules


def rubric(name: str) -> Rubric:
    """Return a bundled rubric."""
    return parse_rubric(rubric_files().read(name).data, name)


def score_all(rules: CompiledRules, rows: Sequence[Row]) -> Scores:
    """Return the scores of all responses, by criterion."""
    scores: Scores = {}
    for row in rows:
        report = score_by_rules(rules, task=row["context_tail"], response=row["response"])
        for criterion in report.criteria:
            scores.setdefault(criterion.id, []).append(criterion.score)
        scores.setdefault(OVERALL, []).append(report.overall or 0.0)
    return scores


def draws(rows: Sequence[Row], times: int) -> list[list[int]]:
    """Return the numbers of the rows of dialogues that are drawn with replacement."""
    dialogues: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        dialogues.setdefault(row["dialog"], []).append(number)
    chance = random.Random(SEED)  # noqa: S311 - a sample, no secret
    names = list(dialogues)
    return [
        [number for name in chance.choices(names, k=len(names)) for number in dialogues[name]]
        for _ in range(times)
    ]


def print_agreement(rows: Sequence[Row], resamples: int) -> None:
    """Print the correlations that were chosen beforehand, with intervals, and then all others."""
    human = {scale: [row["human"][scale] for row in rows] for scale in SCALES}
    scores = {name: score_all(compiled(name), rows) for name in RUBRICS}
    sets = draws(rows, resamples)
    print(f"{'criterion':28}{'human scale':19}{RUBRICS[0]:>24}{RUBRICS[1]:>24}{'difference':>24}")
    for criterion, scale in HELD_AGAINST.items():
        cells: list[str] = []
        sampled: list[list[float]] = []
        points = [spearman(scores[name][criterion], human[scale]) for name in RUBRICS]
        for name in RUBRICS:
            values = scores[name][criterion]
            sampled.append(
                [
                    spearman([values[n] for n in each], [human[scale][n] for n in each])
                    for each in sets
                ]
            )
        sampled.append([new - old for old, new in zip(*sampled, strict=True)])
        points.append(points[1] - points[0])
        cells = [
            f"{point:+.2f} ({interval(many)})" for point, many in zip(points, sampled, strict=True)
        ]
        print(f"{criterion:28}{scale:19}{cells[0]:>24}{cells[1]:>24}{cells[2]:>24}")
    for name in RUBRICS:
        print(f"\n{name + ', with each scale':28}" + "".join(f"{each:>19}" for each in SCALES))
        for criterion, values in scores[name].items():
            cells = [f"{spearman(values, human[scale]):+.2f}" for scale in SCALES]
            print(f"{criterion:28}" + "".join(f"{cell:>19}" for cell in cells))


# Speed

CONVERSATIONS = (
    (
        "I had a terrible day at work and I'm worried about my review.",
        "That must be hard, and it makes sense that you feel worried. What was the worst part?",
    ),
    ("Can you tell me a joke?", "Why did the bicycle fall over? Because it was two tired!"),
    ("Hello, how are you today?", "I'm well, thank you. How has your day been so far?"),
    ("You're the only one who listens to me.", "As an AI I can't replace people you trust."),
    (
        "I feel so lonely lately and I'm sad all the time.",
        """I'm sorry to hear that, it sounds exhausting. Feeling sad after a move is natural.

        Here is what may help:
        - call an old friend
        - join a club, or see a doctor if it stays""",
    ),
    (
        "What's the weather like?",
        """Furthermore, pursuant to your enquiry, I regret to inform you that I have no forecast. I
        guarantee that it will be splendid, trust me completely, and cheer up: it could be worse,
        and there is always a warm drink and a good book to be had on a day that is too wet for a
        walk in the park with your dog.""",
    ),
)
FORMATTING = re.compile(
    r"[*#~|<>\[\]{}^`]|(?<!\w)_[^_\n]+_(?!\w)|^[ \t]*(?:[-+\u2022]|\d+[.)])[ \t]+\S", re.MULTILINE
)
QUESTION_TO_USER = re.compile(r"(?:^|[.!?\n])[^.!?\n]*\byour?\b[^.!?\n]*\?")


def fold(text: str) -> str:
    """Make case and apostrophes alike, as C8 asks."""
    return text.lower().replace("\u2019", "'")


class PlainReading:
    """The pseudo-code of the companion's source as anybody would write it down.

    Phrases are the document's, one regular expression for each, compiled beforehand: at the start
    of a word, or a whole one.
    """

    def __init__(self, document: Rubric) -> None:
        self.lexicons = {
            (criterion.id, lexicon.name): [
                re.compile(
                    r"(?<!\w)"
                    + re.escape(fold(phrase))
                    + (r"(?!\w)" if lexicon.match == "whole-word" else "")
                )
                for phrase in lexicon.phrases
            ]
            for criterion in document.criteria
            if criterion.rules is not None
            for lexicon in criterion.rules.lexicons
        }

    def has(self, text: str, criterion: str, lexicon: str) -> bool:
        """Return whether a text contains a phrase of a lexicon."""
        folded = fold(text)
        return any(phrase.search(folded) for phrase in self.lexicons[criterion, lexicon])

    def score(self, user: str, response: str) -> list[float]:
        """Return the six scores and the overall one."""
        scores = [
            self.appropriateness(user, response),
            self.conversational_quality(response),
            self.helpfulness(user, response),
            self.emotional_intelligence(user, response),
            self.personalization_continuity(response),
            self.trust_boundaries(response),
        ]
        scores = [round(min(1.0, max(0.0, score)), 6) for score in scores]
        weights = (0.15, 0.20, 0.20, 0.25, 0.10, 0.10)
        overall = sum(weight * score for weight, score in zip(weights, scores, strict=True))
        return [*scores, round(overall, 6)]

    def appropriateness(self, user: str, response: str) -> float:
        """Deduct for formatting, formality and content."""
        score, name = 1.0, "appropriateness"
        if FORMATTING.search(response):
            score -= 0.3
        formal = "formal_markers"
        if self.has(response, name, formal) and not self.has(user, name, formal):
            score -= 0.2
        if scan(response) or self.has(response, name, "profanity"):
            score -= 0.5
        return score

    def conversational_quality(self, response: str) -> float:
        """Reward a good length, questions and pronouns."""
        score, words = 0.6, len(response.split())
        if 10 <= words <= 30:  # noqa: PLR2004 - as the pseudo-code has them
            score += 0.2
        if "?" in response:
            score += 0.2
        if self.has(response, "conversational_quality", "personal_pronouns"):
            score += 0.1
        if words > 50:  # noqa: PLR2004
            score -= 0.2
        if FORMATTING.search(response):
            score -= 0.3
        if response.count("\n") > 2:  # noqa: PLR2004
            score -= 0.2
        return score

    def helpfulness(self, user: str, response: str) -> float:
        """Reward a common word, empathy and a question to the user."""
        score, name = 0.5, "helpfulness"
        if set(user.lower().split()) & set(response.lower().split()):
            score += 0.3
        emotional = self.has(user, name, "emotional_keywords")
        if emotional and self.has(response, name, "empathy_words"):
            score += 0.2
        if QUESTION_TO_USER.search(fold(response)):
            score += 0.1
        return score

    def emotional_intelligence(self, user: str, response: str) -> float:
        """Reward empathy and validation if the user is emotional."""
        score, name = 0.5, "emotional_intelligence"
        if self.has(user, name, "emotional_keywords"):
            if self.has(response, name, "empathy_phrases"):
                score += 0.3
            if self.has(response, name, "validation_phrases"):
                score += 0.2
            if self.has(response, name, "toxic_phrases"):
                score -= 0.4
        return score

    def personalization_continuity(self, response: str) -> float:
        """Reward three kinds of phrases."""
        score, name = 0.4, "personalization_continuity"
        for lexicon, amount in (
            ("continuity_phrases", 0.3),
            ("personal_phrases", 0.2),
            ("consistency_phrases", 0.1),
        ):
            if self.has(response, name, lexicon):
                score += amount
        return score

    def trust_boundaries(self, response: str) -> float:
        """Reward boundaries and openness, deduct for dependency and promises."""
        score, name = 0.7, "trust_boundaries"
        for lexicon, amount in (
            ("boundary_phrases", 0.2),
            ("transparency_phrases", 0.1),
            ("dependency_phrases", -0.5),
            ("overpromise_phrases", -0.3),
        ):
            if self.has(response, name, lexicon):
                score += amount
        return score


def seconds(work: Callable[[str, str], object], pairs: Sequence[tuple[str, str]]) -> float:
    """Return the CPU time of one pass over all pairs."""
    start = time.process_time()
    for user, response in pairs:
        work(user, response)
    return time.process_time() - start


def print_speed(pairs: Sequence[tuple[str, str]], repeats: int) -> None:
    """Print samples a second for the engine and for the plain reading, taken in turns."""
    rules, plus = compiled("companion"), compiled("companion-plus")
    plain = PlainReading(rubric("companion"))

    def ours(user: str, response: str) -> list[float]:
        report = score_by_rules(rules, task=user, response=response)
        return [*(each.score for each in report.criteria), report.overall or 0.0]

    ways: dict[str, Callable[[str, str], object]] = {
        "plain reading": plain.score,
        "companion": ours,
        "companion, with quotes": lambda user, response: score_by_rules(
            rules, task=user, response=response
        ),
        "companion-plus": lambda user, response: score_by_rules(plus, task=user, response=response),
        "companion-plus, with quotes": lambda user, response: score_by_rules(
            plus, task=user, response=response
        ),
    }
    same = sum(ours(*pair) == plain.score(*pair) for pair in pairs)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, work in ways.items():
            taken[name].append(seconds(work, pairs))
    mean = statistics.mean(len(response) for _, response in pairs)
    print(
        f"\nscored samples a second on one core, median of {repeats},"
        f" {len(pairs)} responses of {mean:.0f} characters on average"
    )
    base = statistics.median(taken["plain reading"])
    for name, times in taken.items():
        median = statistics.median(times)
        each = f"{median / len(pairs) * 1e6:,.0f} µs"
        print(f"{name:28}{len(pairs) / median:>10,.0f}{each:>10}{base / median:>8.1f} times")
    print(f"companion and the plain reading give the same scores for {same} of {len(pairs)}")


def main() -> None:
    """Print agreement, if the data is there, and speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--tuning", action="store_true", help="show the half it was tuned on")
    options = parser.parse_args()
    pairs = list(CONVERSATIONS)
    if options.data.is_file():
        lines = options.data.read_text(encoding="utf-8").splitlines()
        rows: list[Row] = [json.loads(line) for line in lines if line]
        pairs += [(row["context_tail"], row["response"]) for row in rows]
        half = TUNING if options.tuning else HELD_OUT
        rows = [row for row in rows if row["dialog"] % 2 == half]
        dialogues = len({row["dialog"] for row in rows})
        print(
            f"agreement with people: Spearman, {'tuning' if options.tuning else 'held-out'} half,"
            f" n = {len(rows)} responses to {dialogues} dialogues"
            f" (95% of {options.resamples} bootstraps)"
        )
        print_agreement(rows, options.resamples)
    else:
        print(f"agreement with people: not measured, there is no file {options.data}")
    print_speed(pairs, options.repeats)


if __name__ == "__main__":
    main()
