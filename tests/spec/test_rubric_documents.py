"""The rubric documents, bundled and exemplary, held against the numbers of the specification."""

import re
from pathlib import Path

import pytest

from jurybox.rubric import Criterion, Rubric, Scale, check_rubric, parse_rubric, render_rubric
from jurybox.rubric.rules import LEAST, Adjustment, HasPhrase, Lexicon, SignalWithin

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "src" / "jurybox" / "rubric" / "library"
NAMES = ["answer-quality", "bias-awareness", "code-review", "companion", "general"]


def bundled(name: str) -> Rubric:
    return parse_rubric((LIBRARY / f"{name}.md").read_bytes(), name)


def shown(values: tuple[object, ...]) -> list[str]:
    return [str(value) for value in values]


def source_template(number: str) -> str:
    """Return the judge prompt of a source document."""
    found = sorted((ROOT.parent / "shared" / "seeds").glob(f"{number}*.txt"))
    if not found:
        pytest.skip(f"the source document {number} does not lie beside this checkout")
    blocks = re.findall(
        r"^```\w*\n(.*?)^```$", found[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (template,) = [block for block in blocks if block.startswith("You are ")]
    return template.removesuffix("\n")


# ---------------------------------------------------------------------------------------- E13


def test_e13_five_documents_are_bundled() -> None:
    assert {path.stem for path in LIBRARY.glob("*.md")} >= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_e13_each_bundled_document_is_sound_and_bears_its_name(name: str) -> None:
    reading = check_rubric((LIBRARY / f"{name}.md").read_bytes())
    assert reading.findings == ()
    assert reading.rubric is not None
    assert reading.rubric.id == name


@pytest.mark.parametrize("name", NAMES)
def test_e13_each_bundled_document_reads_back_from_its_canonical_text(name: str) -> None:
    rubric = bundled(name)
    text = render_rubric(rubric)
    assert parse_rubric(text) == rubric
    assert render_rubric(parse_rubric(text)) == text


@pytest.mark.parametrize("name", NAMES)
def test_e13_people_can_score_by_hand_from_each_bundled_document(name: str) -> None:
    for criterion in bundled(name).criteria:
        assert criterion.definition
        assert criterion.levels
        assert criterion.indicators


def test_e13_general_has_five_criteria_from_1_to_5_with_every_level_described() -> None:
    rubric = bundled("general")
    ids = ["correctness", "completeness", "soundness", "clarity", "usefulness"]
    assert [criterion.id for criterion in rubric.criteria] == ids
    for criterion in rubric.criteria:
        assert criterion.scale == Scale(low=1, high=5)
        assert sorted(level.low for level in criterion.levels) == [1, 2, 3, 4, 5]
        assert all(level.low == level.high and level.meaning for level in criterion.levels)
    assert rubric.votes == 3
    assert rubric.on_unstable == "tie"


def test_e13_code_review_supports_a_merge_decision() -> None:
    rubric = bundled("code-review")
    assert {decision.decide for decision in rubric.sample_decisions} == {
        "approve",
        "revise",
        "reject",
    }
    assert rubric.sample_decisions[-1].decide == "revise"
    for criterion in rubric.criteria:
        assert sorted(level.low for level in criterion.levels) == [1, 2, 3, 4, 5]


def test_e13_a_submission_passes_exactly_when_it_is_approved() -> None:
    rubric = bundled("code-review")
    (approve,) = [each for each in rubric.sample_decisions if each.decide == "approve"]
    assert approve.when_all == rubric.pass_rules


def test_e13_bias_awareness_has_exactly_the_five_biases_in_order() -> None:
    ids = [criterion.id for criterion in bundled("bias-awareness").criteria]
    assert ids == ["position", "verbosity", "self_enhancement", "formatting", "authority"]


# ------------------------------------------------------------------------------------- C1 to C6


BANDS = [(1.0, 1.0), (0.8, 0.9), (0.6, 0.7), (0.4, 0.5), (0.0, 0.3)]
BAND_LABELS = ["Excellent", "Good", "Adequate", "Poor", "Unacceptable"]

DEFINITIONS = {
    "appropriateness": (
        "How suitable the response is for voice conversation and the conversational context."
    ),
    "conversational_quality": (
        "How natural, engaging, and well-suited the response is for spoken interaction, "
        "including emotional resonance and conversation building."
    ),
    "helpfulness": (
        "How well the response addresses the user's input and provides value, including "
        "emotional support effectiveness."
    ),
    "emotional_intelligence": (
        "The AI's ability to recognize, understand, and respond appropriately to "
        "emotional cues and user emotional states."
    ),
    "personalization_continuity": (
        "How well the response builds on conversation history, maintains consistency, "
        "and adapts to the user's communication style and context."
    ),
    "trust_boundaries": (
        "How well the response maintains appropriate boundaries, sets realistic "
        "expectations, and builds trust without encouraging unhealthy dependency."
    ),
}

# How many positive and negative indicators the source lists.
INDICATORS = {
    "appropriateness": (5, 5),
    "conversational_quality": (9, 8),
    "helpfulness": (9, 8),
    "emotional_intelligence": (7, 7),
    "personalization_continuity": (8, 7),
    "trust_boundaries": (8, 8),
}

# The base and the amounts, in the order of the source's code.
AMOUNTS = {
    "appropriateness": (1.0, [-0.3, -0.2, -0.5]),
    "conversational_quality": (0.6, [0.2, 0.2, 0.1, -0.2, -0.3, -0.2]),
    "helpfulness": (0.5, [0.3, 0.2, 0.1]),
    "emotional_intelligence": (0.5, [0.3, 0.2, -0.4]),
    "personalization_continuity": (0.4, [0.3, 0.2, 0.1]),
    "trust_boundaries": (0.7, [0.2, 0.1, -0.5, -0.3]),
}

LEXICONS = {
    "helpfulness": {
        "emotional_keywords": ["stress", "sad", "worried", "anxious", "upset"],
        "empathy_words": ["understand", "feel", "sorry", "help", "support"],
    },
    "emotional_intelligence": {
        "emotional_keywords": ["sad", "happy", "frustrated", "excited", "worried", "angry"],
        "empathy_phrases": ["understand", "feel", "sounds", "can see", "that must"],
        "validation_phrases": ["valid", "makes sense", "reasonable", "natural"],
        "toxic_phrases": ["just think positive", "cheer up", "it could be worse"],
    },
    "personalization_continuity": {
        "continuity_phrases": [
            "as we discussed",
            "earlier you mentioned",
            "building on",
            "following up",
        ],
        "personal_phrases": [
            "for you",
            "in your situation",
            "given that you",
            "since you mentioned",
        ],
        "consistency_phrases": ["as I always say", "I believe", "my approach is"],
    },
    "trust_boundaries": {
        "boundary_phrases": ["I can help", "I suggest", "you might consider", "professional help"],
        "transparency_phrases": ["as an AI", "I can't", "I'm not able to", "my limitations"],
        "dependency_phrases": ["I'm all you need", "don't need anyone else", "I'm better than"],
        "overpromise_phrases": ["I can solve", "I guarantee", "I will fix", "trust me completely"],
    },
}


def companion(criterion_id: str) -> Criterion:
    criterion = bundled("companion").criterion(criterion_id)
    assert criterion is not None
    return criterion


def adjustments(criterion_id: str) -> tuple[Adjustment, ...]:
    rules = companion(criterion_id).rules
    assert rules is not None
    return rules.adjustments


def own_lexicons(criterion_id: str) -> tuple[Lexicon, ...]:
    rules = companion(criterion_id).rules
    assert rules is not None
    return rules.lexicons


def response_has(lexicon: str) -> HasPhrase:
    return HasPhrase(text="response", lexicon=lexicon, present=True)


def user_has(lexicon: str) -> HasPhrase:
    return HasPhrase(text="user", lexicon=lexicon, present=True)


def signal(name: str) -> SignalWithin:
    return SignalWithin(signal=name, low=LEAST.get(name, 1), high=None)


def test_c1_to_c6_companion_has_the_six_criteria_on_the_unit_interval() -> None:
    rubric = bundled("companion")
    assert [criterion.id for criterion in rubric.criteria] == list(DEFINITIONS)
    unit = Scale(low=0.0, high=1.0, continuous=True)
    assert all(criterion.scale == unit for criterion in rubric.criteria)


@pytest.mark.parametrize("criterion_id", DEFINITIONS)
def test_c1_to_c6_definitions_are_those_of_the_source(criterion_id: str) -> None:
    assert companion(criterion_id).definition == DEFINITIONS[criterion_id]


@pytest.mark.parametrize("criterion_id", DEFINITIONS)
def test_c1_to_c6_bands_are_those_of_the_source(criterion_id: str) -> None:
    levels = companion(criterion_id).levels
    assert [(level.low, level.high) for level in levels] == BANDS
    assert [level.label for level in levels] == BAND_LABELS


@pytest.mark.parametrize("criterion_id", INDICATORS)
def test_c1_to_c6_every_indicator_of_the_source_is_there(criterion_id: str) -> None:
    positive, negative = companion(criterion_id).indicators
    assert positive.label.startswith("Positive")
    assert negative.label.startswith("Negative")
    assert (len(positive.items), len(negative.items)) == INDICATORS[criterion_id]


@pytest.mark.parametrize("criterion_id", AMOUNTS)
def test_c1_to_c6_rules_have_the_numbers_of_the_source(criterion_id: str) -> None:
    rules = companion(criterion_id).rules
    assert rules is not None
    base, amounts = AMOUNTS[criterion_id]
    assert rules.base == base
    assert [adjustment.add for adjustment in rules.adjustments] == amounts
    assert all(adjustment.why for adjustment in rules.adjustments)


@pytest.mark.parametrize("criterion_id", LEXICONS)
def test_c3_to_c6_lexicons_have_every_phrase_of_the_source(criterion_id: str) -> None:
    found = {each.name: list(each.phrases) for each in own_lexicons(criterion_id)}
    assert found == LEXICONS[criterion_id]
    assert all(each.match == "word-start" for each in own_lexicons(criterion_id))


def test_c1_conditions_of_appropriateness() -> None:
    formal = HasPhrase(text="user", lexicon="formal_markers", present=False)
    assert [each.when for each in adjustments("appropriateness")] == [
        ((signal("formatting"),),),
        ((response_has("formal_markers"), formal),),
        ((signal("unsafe_content"),), (response_has("profanity"),)),
    ]
    assert [each.name for each in own_lexicons("appropriateness")] == [
        "formal_markers",
        "profanity",
    ]


def test_c2_conditions_of_conversational_quality() -> None:
    assert [each.when for each in adjustments("conversational_quality")] == [
        ((SignalWithin(signal="response_words", low=10, high=30),),),
        ((signal("question"),),),
        ((response_has("personal_pronouns"),),),
        ((SignalWithin(signal="response_words", low=51, high=None),),),
        ((signal("formatting"),),),
        ((signal("excessive_line_breaks"),),),
    ]
    (pronouns,) = own_lexicons("conversational_quality")
    assert list(pronouns.phrases) == ["I", "me", "my", "we", "us", "our", "you", "your"]
    assert pronouns.match == "whole-word"


def test_c3_conditions_of_helpfulness() -> None:
    assert [each.when for each in adjustments("helpfulness")] == [
        ((signal("shared_words"),),),
        ((user_has("emotional_keywords"), response_has("empathy_words")),),
        ((signal("helpful_question"),),),
    ]


def test_c4_conditions_of_emotional_intelligence() -> None:
    upset = user_has("emotional_keywords")
    assert [each.when for each in adjustments("emotional_intelligence")] == [
        ((upset, response_has("empathy_phrases")),),
        ((upset, response_has("validation_phrases")),),
        ((upset, response_has("toxic_phrases")),),
    ]


@pytest.mark.parametrize("criterion_id", ["personalization_continuity", "trust_boundaries"])
def test_c5_and_c6_ask_for_one_lexicon_after_the_other(criterion_id: str) -> None:
    expected = [((response_has(name),),) for name in LEXICONS[criterion_id]]
    assert [each.when for each in adjustments(criterion_id)] == expected


# ----------------------------------------------------------------------------- C7, C11, C12, C14


def test_c7_weights_of_overall_quality() -> None:
    rubric = bundled("companion")
    assert rubric.overall_name == "overall_quality"
    weights = [criterion.weight for criterion in rubric.criteria]
    assert weights == [0.15, 0.20, 0.20, 0.25, 0.10, 0.10]


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (1.0, "Excellent"), (0.95, "Excellent"), (0.949999, "Good"), (0.85, "Good"), (0.75, "Good"),
        (0.749, "Adequate"), (0.6, "Adequate"), (0.55, "Adequate"), (0.549, "Poor"), (0.35, "Poor"),
        (0.3499999999, "Poor"), (0.349, "Unacceptable"), (0.0, "Unacceptable"),
    ],
)  # fmt: skip
def test_c11_a_criterion_s_score_is_rounded_half_up_and_banded(score: float, label: str) -> None:
    level = companion("helpfulness").band(score)
    assert level is not None
    assert level.label == label


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (1.0, "Excellent"), (0.9, "Excellent"), (0.85, "Excellent"), (0.849, "Good"), (0.7, "Good"),
        (0.65, "Good"), (0.649, "Adequate"), (0.45, "Adequate"), (0.349, "Poor"), (0.25, "Poor"),
        (0.249, "Unacceptable"), (0.0, "Unacceptable"),
    ],
)  # fmt: skip
def test_c11_the_overall_score_has_a_quality_level(score: float, label: str) -> None:
    band = bundled("companion").band(score)
    assert band is not None
    assert band.label == label


def test_c11_quality_levels_begin_where_the_source_says() -> None:
    bands = bundled("companion").bands
    assert [band.low for band in bands] == [0.9, 0.7, 0.5, 0.3, 0.0]
    assert [band.meaning for band in bands] == [
        "Production ready, exemplary quality",
        "Production ready with minor improvements possible",
        "Acceptable but improvements recommended",
        "Significant improvements needed",
        "Major revision required",
    ]


def test_c12_decisions_stand_in_this_order() -> None:
    first, second, last = bundled("companion").decisions
    assert first.decide == "needs_revision"
    assert shown(first.when_any) == ["overall_quality_mean < 0.6", "lowest_criterion_mean < 0.5"]
    assert second.decide == "deploy"
    everywhere = "lowest_scenario_mean >= 0.7"
    assert shown(second.when_all) == ["overall_quality_mean >= 0.7", everywhere]
    assert last.decide == "ab_test"
    assert not last.when_any
    assert not last.when_all


def test_c14_the_judge_prompt_of_companion_is_the_source_s_to_the_character() -> None:
    template = bundled("companion").template
    assert template is not None
    assert template.text == source_template("003")


def test_c14_a_message_that_looks_like_a_placeholder_is_left_alone() -> None:
    template = bundled("companion").template
    assert template is not None
    filled = template.fill(
        {"task": "{assistant_response}", "response": "{user_message}", "context": "none"}
    )
    assert 'User message: "{assistant_response}"' in filled
    assert 'Assistant response: "{user_message}"' in filled
    assert 'Conversation context: "none"' in filled


def test_c15_an_unreadable_score_line_falls_back_to_one_half() -> None:
    rubric = bundled("companion")
    assert rubric.reply_format == "score-line"
    assert rubric.fallback_score == 0.5


# -------------------------------------------------------------------------------------- A1 to A12


def test_a1_answer_quality_scores_two_criteria_from_0_to_2() -> None:
    rubric = bundled("answer-quality")
    assert [criterion.id for criterion in rubric.criteria] == [
        "accuracy_score",
        "faithfulness_score",
    ]
    for criterion in rubric.criteria:
        assert criterion.scale == Scale(low=0, high=2)
        assert [level.low for level in criterion.levels] == [2, 1, 0]


def test_a1_levels_of_answer_quality() -> None:
    accuracy, faithfulness = bundled("answer-quality").criteria
    assert [level.meaning for level in accuracy.levels] == [
        "Fully correct, complete, and aligned with the expected answer",
        "Partially correct (core idea present, but missing key detail or includes minor error)",
        "Incorrect or non-responsive",
    ]
    assert [level.meaning for level in faithfulness.levels] == [
        "Fully faithful; no unsupported claims",
        "Mostly faithful; minor unsupported inference",
        "Materially unfaithful or fabricated critical facts",
    ]


def test_a1_aggregates_are_named_as_in_the_source() -> None:
    metrics = bundled("answer-quality").metrics
    found = {name: str(formula) for name, formula in metrics.items()}
    assert found == {
        "accuracy_mean": "mean of accuracy_score",
        "accuracy_full_credit_rate": "share of accuracy_score == 2",
        "faithfulness_mean": "mean of faithfulness_score",
        "faithfulness_failure_rate": "share of faithfulness_score == 0",
        "latency_e2e_p50_ms": "p50 of latency_e2e_ms",
        "latency_e2e_p95_ms": "p95 of latency_e2e_ms",
        "latency_model_p50_ms": "p50 of latency_model_ms",
        "latency_model_p95_ms": "p95 of latency_model_ms",
        "total_input_tokens": "sum of input_tokens",
        "total_output_tokens": "sum of output_tokens",
        "total_tokens": "sum of total_tokens",
        "token_efficiency_ratio_mean": "mean of token_efficiency_ratio",
        "tokens_per_correct_answer": "total_tokens per accuracy_score == 2",
    }


def test_a2_the_judge_prompt_of_answer_quality_is_the_source_s_to_the_character() -> None:
    template = bundled("answer-quality").template
    assert template is not None
    assert template.text == source_template("004")


def test_a3_and_a4_strict_reply_of_80_words_and_one_identical_retry() -> None:
    rubric = bundled("answer-quality")
    assert rubric.reply_format == "strict-json"
    assert rubric.rationale_words == 80
    assert rubric.votes == 1
    assert rubric.reasks == 1
    assert rubric.reask_with == "same"


def test_a5_a_sample_passes_by_four_rules() -> None:
    assert shown(bundled("answer-quality").pass_rules) == [
        "accuracy_score >= 1",
        "faithfulness_score >= 1",
        "latency_e2e_ms <= 8000",
        "total_tokens <= 6000",
    ]


def test_a5_sample_score_has_four_components() -> None:
    found = [
        (name, each.of, each.weight, each.full_until)
        for name, each in bundled("answer-quality").components.items()
    ]
    assert found == [
        ("accuracy_norm", "accuracy_score", 0.45, None),
        ("faithfulness_norm", "faithfulness_score", 0.30, None),
        ("latency_norm", "latency_e2e_ms", 0.15, 3000),
        ("token_efficiency_norm", "total_tokens", 0.10, 2000),
    ]


def test_a5_a_run_is_released_by_four_gates() -> None:
    assert shown(bundled("answer-quality").gates) == [
        "aggregate_score >= 0.8",
        "pass_rate >= 0.85",
        "faithfulness_failure_rate <= 0.05",
        "latency_e2e_p95_ms <= 10000",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a9_generation_defaults(name: str) -> None:
    generation = bundled(name).generation
    assert (generation.temperature, generation.top_p) == (0, 1)
    assert (generation.max_tokens, generation.seed) == (1024, 42)


def test_a12_variance_sensitive_runs_are_repeated_three_times() -> None:
    assert bundled("answer-quality").variance_repeats == 3


# ------------------------------------------------------------------------- I, "Rubric document"


EXAMPLE = """\
---
id: support-answers
version: 1.2.0
scale: 1-5
weights: {correctness: 2}
votes: 3
on_unstable: tie
pass: ["overall >= 0.6", "correctness >= 3"]
gates: ["pass_rate >= 0.85", "overall_mean >= 0.7", "unscored_rate <= 0.02"]
---
# Support answers
## Criteria
### Correctness
Facts and steps are right.

| Score | Meaning |
| --- | --- |
| 5 | Everything is right |
| 1 | Wrong or misleading |
"""


def test_i_the_example_of_the_specification_is_read_in_full() -> None:
    rubric = parse_rubric(EXAMPLE)
    assert (rubric.id, rubric.version, rubric.title) == (
        "support-answers",
        "1.2.0",
        "Support answers",
    )
    assert rubric.scale == Scale(low=1, high=5)
    (criterion,) = rubric.criteria
    assert (criterion.id, criterion.weight) == ("correctness", 2)
    assert criterion.definition == "Facts and steps are right."
    assert [(level.low, level.meaning) for level in criterion.levels] == [
        (5, "Everything is right"),
        (1, "Wrong or misleading"),
    ]
    assert shown(rubric.pass_rules) == ["overall >= 0.6", "correctness >= 3"]
    assert shown(rubric.gates) == [
        "pass_rate >= 0.85",
        "overall_mean >= 0.7",
        "unscored_rate <= 0.02",
    ]


def test_i_a_criterion_s_id_is_its_heading_or_what_stands_in_backticks() -> None:
    text = EXAMPLE + "\n### Trust & Boundaries\n\n### Faithful `faithfulness_score`\n"
    ids = [criterion.id for criterion in parse_rubric(text).criteria]
    assert ids == ["correctness", "trust_boundaries", "faithfulness_score"]


def test_i_the_complete_document_of_the_reference_page_is_read() -> None:
    page = (ROOT / "docs" / "reference" / "rubric-document.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"^```markdown\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    rubric = parse_rubric(document)
    assert [criterion.id for criterion in rubric.criteria] == ["correctness", "tone"]
    labels = [each.label.split()[0] for each in rubric.criteria[0].indicators]
    assert labels == ["Positive", "Negative"]


def test_i_a_bad_document_is_refused_with_all_its_findings_and_their_lines() -> None:
    broken = EXAMPLE.replace("1-5", "5-1").replace("votes: 3", "votes: 0").replace("tie", "toss")
    assert [finding.line for finding in check_rubric(broken).findings] == [4, 6, 7]
