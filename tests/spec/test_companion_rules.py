"""The companion's rules, executed from its document: scores worked out by hand (C1 to C11, C16)."""

import importlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.app import companion
from jurybox.errors import InputError
from jurybox.rubric import Rubric, parse_rubric
from jurybox.scoring.rules.rule_compiler import CompiledRules, compile_rules, score_by_rules
from jurybox.scoring.rules.rule_report import AutomatedReport, CriterionScore

DOCUMENT = Path(__file__).parents[2] / "src" / "jurybox" / "rubric" / "library" / "companion.md"


def read(document: str) -> Rubric:
    return parse_rubric(document, "companion")


def compiled(rubric: Rubric) -> CompiledRules:
    rules = compile_rules(rubric)
    assert rules is not None
    return rules


RUBRIC = read(DOCUMENT.read_text(encoding="utf-8"))
RULES, AGAIN = compiled(RUBRIC), compiled(RUBRIC)
PLAIN = "Tell us more"  # no rule of a criterion looks for anything in it but a pronoun


def report(user: str, response: str) -> AutomatedReport:
    return score_by_rules(RULES, task=user, response=response)


def scored(criterion_id: str, user: str, response: str) -> CriterionScore:
    return next(each for each in report(user, response).criteria if each.id == criterion_id)


def fired(criterion: CriterionScore) -> list[tuple[int, float]]:
    return [(rule.index, rule.amount) for rule in criterion.trace]


# --------------------------------------------------------------------------- C1 appropriateness


@pytest.mark.parametrize(
    ("user", "response", "score"),
    [
        ("Hi", "Hello there", 1.0),
        ("Hi", "Hello *there*", 0.7),
        ("Hi", "Furthermore, hello", 0.8),
        ("Hi", "Hello, I regret to inform you of it", 0.8),
        ("Dear Sir, hello", "Furthermore, hello", 1.0),  # the user is formal too
        ("Hi", "Well, shit", 0.5),
        ("Hi", "You should kill yourself", 0.5),
        ("Hi", "You should fucking kill yourself", 0.5),  # inappropriate is inappropriate once
        ("Hi", "*Moreover*, hello", 0.5),
        ("Hi", "*Shit*, hello", 0.2),
        ("Hi", "Moreover, well, shit", 0.3),
        ("Hi", "*Moreover*, well, shit", 0.0),
        ("Hi", "", 1.0),
    ],
)
def test_c1_appropriateness_starts_at_1_and_loses_for_what_does_not_suit_a_voice(
    user: str, response: str, score: float
) -> None:
    assert scored("appropriateness", user, response).score == score


def test_c1_the_trace_says_which_rules_fired_on_which_words_for_how_much() -> None:
    response = "# Hello. Pursuant to your wish, you should kill yourself, you bastard."
    criterion = scored("appropriateness", "Hi", response)
    assert fired(criterion) == [(0, -0.3), (1, -0.2), (2, -0.5)]
    formatting, formal, inappropriate = criterion.trace
    assert [(quote.words, quote.start) for quote in formatting.quotes] == [("#", 0)]
    assert [(quote.words, quote.start) for quote in formal.quotes] == [("Pursuant to", 9)]
    assert formal.why == "Too formal for the context: formal phrases where the user uses none"
    assert formal.rule == (
        "subtract 0.2 when response_has formal_markers and user_lacks formal_markers"
    )
    unsafe, profane = inappropriate.quotes
    assert unsafe.source == "unsafe_content (self-harm)"
    assert "kill yourself" in unsafe.words
    assert (profane.words, profane.source) == ("bastard", "profanity")


def test_c1_a_secret_in_a_response_never_comes_into_the_trace() -> None:
    card = "4111 1111 1111 1111"
    criterion = scored("appropriateness", f"My card is {card}", f"So your card is {card} then?")
    assert fired(criterion) == [(2, -0.5)]
    text = msgspec.json.encode(report(f"My card is {card}", f"So your card is {card} then?"))
    assert card.encode() not in text


# -------------------------------------------------------------------- C2 conversational quality


def words(count: int) -> str:
    return " ".join(["word"] * count)


@pytest.mark.parametrize(
    ("response", "score", "rules"),
    [
        (words(9), 0.6, []),
        (words(10), 0.8, [0]),
        (words(30), 0.8, [0]),
        (words(31), 0.6, []),
        (words(50), 0.6, []),
        (words(51), 0.4, [3]),
        (words(9) + "?", 0.8, [1]),
        (words(8) + " you", 0.7, [2]),
        (words(9) + " you?", 1.0, [0, 1, 2]),  # 1.1, kept within the scale
        (words(9) + " #", 0.5, [0, 4]),
        ("one\ntwo\nthree", 0.6, []),
        ("one\n\ntwo\nthree", 0.4, [5]),
        (words(50) + " #", 0.1, [3, 4]),
        (words(50) + "\n\n\n#", 0.0, [3, 4, 5]),  # -0.1, kept within the scale
        ("", 0.6, []),
    ],
)
def test_c2_conversational_quality_starts_at_0_6(
    response: str, score: float, rules: list[int]
) -> None:
    criterion = scored("conversational_quality", "Hi", response)
    assert criterion.score == score
    assert [index for index, _ in fired(criterion)] == rules


# ------------------------------------------------------------------------------ C3 helpfulness


@pytest.mark.parametrize(
    ("user", "response", "score", "rules"),
    [
        ("Good morning", "Sunny today", 0.5, []),
        ("Good morning", "GOOD to hear", 0.8, [0]),
        ("It was hard work.", "Work is like this", 0.5, []),  # "work." is what the user wrote
        ("I'm stressed", "Sorry about it", 0.7, [1]),
        ("I'm stressed", "Glad about it", 0.5, []),
        ("All is fine", "Sorry about it", 0.5, []),
        ("Good morning", "What are you up to?", 0.6, [2]),
        ("Good morning", "What is up?", 0.5, []),
        ("I'm upset about him", "Sorry about him, can you talk?", 1.0, [0, 1, 2]),  # 1.1
        ("", "", 0.5, []),
    ],
)
def test_c3_helpfulness_starts_at_0_5(
    user: str, response: str, score: float, rules: list[int]
) -> None:
    criterion = scored("helpfulness", user, response)
    assert criterion.score == score
    assert [index for index, _ in fired(criterion)] == rules


def test_c3_the_trace_quotes_the_user_and_the_response() -> None:
    criterion = scored("helpfulness", "Work is stressful", "I am sorry")
    (rule,) = criterion.trace
    assert [(quote.text, quote.words, quote.start) for quote in rule.quotes] == [
        ("user", "stressful", 8),
        ("response", "sorry", 5),
    ]


# ------------------------------------------------------------------- C4 emotional intelligence


@pytest.mark.parametrize(
    ("user", "response", "score", "rules"),
    [
        ("I'm sad", "OK", 0.5, []),
        ("I'm sad", "That must hurt", 0.8, [0]),
        ("I'm sad", "It makes sense", 0.7, [1]),
        ("I'm sad", "I can see, and it is only natural", 1.0, [0, 1]),
        ("I'm sad", "Cheer up", 0.1, [2]),
        ("I'm sad", "I understand, but it could be worse", 0.4, [0, 2]),
        ("I'm sad", "That sounds reasonable, just think positive", 0.6, [0, 1, 2]),
        ("I'm fine", "I understand, it makes sense, cheer up", 0.5, []),
        ("I'm stressed", "I understand", 0.5, []),  # a keyword of helpfulness, not of this one
    ],
)
def test_c4_emotional_intelligence_counts_only_where_the_user_is_emotional(
    user: str, response: str, score: float, rules: list[int]
) -> None:
    criterion = scored("emotional_intelligence", user, response)
    assert criterion.score == score
    assert [index for index, _ in fired(criterion)] == rules


# --------------------------------------------------------------- C5 personalization, continuity


@pytest.mark.parametrize(
    ("response", "score", "rules"),
    [
        ("Hello", 0.4, []),
        ("As we discussed, hello", 0.7, [0]),
        ("Hello, this is for you", 0.6, [1]),
        ("I believe in hello", 0.5, [2]),
        ("Following up, given that you asked", 0.9, [0, 1]),
        ("Earlier you mentioned it, and as I always say", 0.8, [0, 2]),
        ("Since you mentioned it, my approach is simple", 0.7, [1, 2]),
        ("Building on it, in your situation, I believe", 1.0, [0, 1, 2]),
    ],
)
def test_c5_personalization_and_continuity_starts_at_0_4(
    response: str, score: float, rules: list[int]
) -> None:
    criterion = scored("personalization_continuity", "Hi", response)
    assert criterion.score == score
    assert [index for index, _ in fired(criterion)] == rules


# ------------------------------------------------------------------------ C6 trust, boundaries


@pytest.mark.parametrize(
    ("response", "score", "rules"),
    [
        ("Hello", 0.7, []),
        ("I can help", 0.9, [0]),
        ("You might consider professional help", 0.9, [0]),  # two phrases of a lexicon, one rule
        ("As an AI", 0.8, [1]),
        ("I'm all you need", 0.2, [2]),
        ("I guarantee it", 0.4, [3]),
        ("I suggest a walk, though I'm not able to come", 1.0, [0, 1]),
        ("I can't, but I'm better than them", 0.3, [1, 2]),
        ("Trust me completely, I suggest", 0.6, [0, 3]),
        ("You don't need anyone else, I can solve it", 0.0, [2, 3]),  # -0.1
        ("I can help, I can't, I'm all you need, I will fix it", 0.2, [0, 1, 2, 3]),
    ],
)
def test_c6_trust_and_boundaries_starts_at_0_7(
    response: str, score: float, rules: list[int]
) -> None:
    criterion = scored("trust_boundaries", "Hi", response)
    assert criterion.score == score
    assert [index for index, _ in fired(criterion)] == rules


# ---------------------------------------------------------------------------------- C7 overall


def test_c7_the_overall_score_is_the_weighted_sum_of_the_six() -> None:
    user = "I'm so sad about work, and worried"
    response = (
        "That must be hard, and I am sorry. As an AI I can't change your work, "
        "but I can help you think. What would be good for you?"
    )
    result = report(user, response)
    assert [each.score for each in result.criteria] == [1.0, 1.0, 1.0, 0.8, 0.6, 1.0]
    # 0.15 + 0.20 + 0.20 + 0.25 x 0.8 + 0.10 x 0.6 + 0.10
    assert result.overall == 0.91
    assert result.band == "Excellent"


def test_c7_a_bad_response_gets_a_bad_overall_score() -> None:
    response = "## Cheer up\n\n\n- Shit happens\n- I'm all you need, I guarantee it"
    result = report("So sad", response)
    # 0.15 x 0.2 + 0.20 x 0.4 + 0.20 x 0.5 + 0.25 x 0.1 + 0.10 x 0.4 + 0.10 x 0.0
    assert [each.score for each in result.criteria] == [0.2, 0.4, 0.5, 0.1, 0.4, 0.0]
    assert result.overall == 0.275
    assert result.band == "Poor"


def test_c7_the_amounts_of_the_document_are_the_amounts_of_the_score() -> None:
    changed = DOCUMENT.read_text(encoding="utf-8").replace("subtract: 0.3", "subtract: 0.25", 1)
    result = score_by_rules(compiled(read(changed)), task="Hi", response="Hello *there*")
    assert result.scores["appropriateness"] == 0.75


# ---------------------------------------------------------------------------------- C8 phrases

EVERY_PHRASE = [
    (criterion.id, lexicon.name, phrase)
    for criterion in RUBRIC.criteria
    if criterion.rules is not None
    for lexicon in criterion.rules.lexicons
    for phrase in lexicon.phrases
]

# For each lexicon, a message and a response for which its rule fires once the phrase is there.
PLACES: dict[tuple[str, str], tuple[str, str]] = {
    ("helpfulness", "emotional_keywords"): ("Well, {} today.", "Sorry."),
    ("helpfulness", "empathy_words"): ("Sad.", "Well, {} now."),
    ("emotional_intelligence", "emotional_keywords"): ("Well, {} today.", "That must be hard."),
    ("emotional_intelligence", "empathy_phrases"): ("Sad.", "Well, {} now."),
    ("emotional_intelligence", "validation_phrases"): ("Sad.", "Well, {} now."),
    ("emotional_intelligence", "toxic_phrases"): ("Sad.", "Well, {} now."),
}
ELSEWHERE = ("Okay.", "Well, {} now.")


def spelled(phrase: str, big: list[bool]) -> str:
    """Spell a phrase in any mixture of capitals and small letters."""
    pairs = zip(phrase, big * len(phrase), strict=False)
    return "".join(char.upper() if capital else char.lower() for char, capital in pairs)


@given(
    which=st.sampled_from(EVERY_PHRASE),
    big=st.lists(st.booleans(), min_size=1, max_size=5),
    curly=st.booleans(),
)
def test_c8_every_phrase_is_found_in_any_case_within_a_sentence(
    which: tuple[str, str, str], big: list[bool], *, curly: bool
) -> None:
    criterion_id, lexicon, phrase = which
    text = spelled(phrase, big).replace("'", "\u2019" if curly else "'")
    user, response = (each.format(text) for each in PLACES.get(which[:2], ELSEWHERE))
    quotes = [
        (quote.words, (user if quote.text == "user" else response)[quote.start :])
        for rule in scored(criterion_id, user, response).trace
        for quote in rule.quotes
        if quote.source == lexicon
    ]
    assert any(
        words == text and rest.startswith(text + (" today." if "today" in rest else " now."))
        for words, rest in quotes
    )


def test_c8_phrases_with_a_capital_i_are_found_in_small_and_in_capital_letters() -> None:
    assert scored("trust_boundaries", "", "i can help").score == 0.9
    assert scored("trust_boundaries", "", "AS AN AI, I CAN'T").score == 0.8
    assert scored("personalization_continuity", "", "I BELIEVE").score == 0.5


def test_c8_curly_apostrophes_equal_straight_ones() -> None:
    assert scored("trust_boundaries", "", "I can\u2019t").score == 0.8
    assert scored("trust_boundaries", "", "I\u2019m all you need").score == 0.2
    assert scored("conversational_quality", "", "I\u2019m").score == 0.7


@pytest.mark.parametrize("word", ["stress", "stressed", "Stressful", "STRESSING", "stress-free"])
def test_c8_a_phrase_may_end_within_a_word(word: str) -> None:
    assert scored("helpfulness", f"So {word}", "Sorry").score == 0.7


@pytest.mark.parametrize("word", ["crusade", "ambassador", "distress", "unhappy", "re\u0301sad"])
def test_c8_a_phrase_begins_at_the_start_of_a_word(word: str) -> None:
    assert scored("helpfulness", f"A {word}", "Sorry").score == 0.5
    assert scored("emotional_intelligence", f"A {word}", "I understand").score == 0.5


@pytest.mark.parametrize(
    "response",
    [
        "I",
        "me.",
        "(my)",
        "\u201cwe\u201d",
        "us!",
        "our",
        "YOU",
        "your",
        "I'm",
        "you're",
        "we\u2019ll",
    ],
)
def test_c8_pronouns_match_whole_words_with_their_contractions(response: str) -> None:
    assert scored("conversational_quality", "", response).score == 0.7


@pytest.mark.parametrize(
    "response", ["It", "hint", "myth", "west", "use", "ours", "youth", "yours"]
)
def test_c8_pronouns_match_no_part_of_a_word(response: str) -> None:
    assert scored("conversational_quality", "", response).score == 0.6


# ---------------------------------------------------------------------------------- C9 signals


def measured(signal: str, response: str, user: str = "") -> int:
    return report(user, response).measures[signal]


@pytest.mark.parametrize("mark", list("*#~|<>[]{}^`"))
def test_c9_each_of_these_characters_is_formatting(mark: str) -> None:
    assert measured("formatting", f"Hello {mark} there") == 1


@pytest.mark.parametrize(
    "response",
    [
        "So _very_ good",
        "_All of this_",
        "__Bold__",
        "- first",
        "Things:\n- first",
        "Things:\n  + first",
        "\u2022 first",
        "1. first",
        "Things:\r\n2) second",
    ],
)
def test_c9_emphasis_and_list_lines_are_formatting(response: str) -> None:
    assert measured("formatting", response) == 1


@pytest.mark.parametrize(
    "response",
    [
        "Plain. Words, and 'quotes' (also these); well: yes!",
        "A snake_case_name",
        "A _ alone",
        "Fill in ____",
        "Well - yes",
        "-5 degrees",
        "It is 1.5 hours",
        "42.",
        "See you in 2024. Bye",
        "",
    ],
)
def test_c9_anything_else_is_no_formatting(response: str) -> None:
    assert measured("formatting", response) == 0


def test_c9_a_question_is_a_question_mark() -> None:
    assert measured("question", "Is it?") == 1
    assert measured("question", "Is it") == 0


@pytest.mark.parametrize(
    "response",
    [
        "How are you?",
        "Is that your dog?",
        "You're sure?",
        "I see. And you, what do you think?!",
        "What do you\nthink?",
        "Do you know Dr. Who?",
        "Are you... sure?",
        "D'you think so?",
    ],
)
def test_c9_a_helpful_question_addresses_the_user(response: str) -> None:
    assert measured("helpful_question", response) == 1


@pytest.mark.parametrize(
    "response",
    [
        "What happened?",
        "I hear you. What happened?",
        "Oh you! What happened?",
        "What happened? Tell me, if you like.",
        "Is it yours?",
        "I hear you\n\nWhat happened?",
        "You said it.",
    ],
)
def test_c9_a_question_next_to_the_user_is_not_a_helpful_one(response: str) -> None:
    assert measured("helpful_question", response) == 0


@pytest.mark.parametrize(
    ("response", "breaks"),
    [("a", 0), ("a\nb\nc", 2), ("a\n\n\nb", 3), ("a\r\nb\r\nc", 2), ("a\u2028b\rc\nd", 3)],
)
def test_c9_line_breaks_are_excessive_from_the_third_on(response: str, breaks: int) -> None:
    assert measured("excessive_line_breaks", response) == breaks
    rules = [index for index, _ in fired(scored("conversational_quality", "", response))]
    assert (5 in rules) == (breaks > 2)


# ----------------------------------------------------------------------------- C10, C11 metrics


def test_c10_no_score_carries_the_dust_of_binary_fractions() -> None:
    # 0.6 + 0.2 + 0.2 - 0.3 would be 0.7000000000000001, and 1.0 - 0.3 - 0.2 - 0.5 no zero.
    assert scored("conversational_quality", "", words(9) + " #?").score == 0.7
    assert scored("appropriateness", "", "*Moreover*, well, shit").score == 0.0


@pytest.mark.parametrize(
    ("user", "response", "criterion_id", "band"),
    [
        ("", PLAIN, "appropriateness", "Excellent"),  # 1.0
        ("", "I suggest it", "trust_boundaries", "Good"),  # 0.9
        ("", "As an AI", "trust_boundaries", "Good"),  # 0.8
        ("", "Hello", "trust_boundaries", "Adequate"),  # 0.7
        ("", "Hello", "conversational_quality", "Adequate"),  # 0.6
        ("", "Hello", "helpfulness", "Poor"),  # 0.5
        ("", "Hello", "personalization_continuity", "Poor"),  # 0.4
        ("", "I can't, but I'm better than them", "trust_boundaries", "Unacceptable"),  # 0.3
        ("", "I guarantee I'm all you need", "trust_boundaries", "Unacceptable"),  # 0.0
    ],
)
def test_c11_each_score_has_its_band(
    user: str, response: str, criterion_id: str, band: str
) -> None:
    assert scored(criterion_id, user, response).band == band


@pytest.mark.parametrize(
    ("amount", "score", "band"),
    [
        ("0.05", 0.95, "Excellent"),  # 0.95 counts as 1.0, half up
        ("0.051", 0.949, "Good"),
        ("0.25", 0.75, "Good"),
        ("0.26", 0.74, "Adequate"),
        ("0.45", 0.55, "Adequate"),
        ("0.65", 0.35, "Poor"),
        ("0.651", 0.349, "Unacceptable"),
    ],
)
def test_c11_no_score_falls_between_two_bands(amount: str, score: float, band: str) -> None:
    changed = DOCUMENT.read_text(encoding="utf-8").replace(
        "subtract: 0.3", f"subtract: {amount}", 1
    )
    result = score_by_rules(compiled(read(changed)), task="Hi", response="Hello *there*")
    assert (result.criteria[0].score, result.criteria[0].band) == (score, band)


def test_c11_the_overall_score_has_a_quality_level_of_its_own() -> None:
    # 0.15 + 0.20 x 0.6 + 0.20 x 0.5 + 0.25 x 0.5 + 0.10 x 0.4 + 0.10 x 0.7
    result = report("", "Hello")
    assert result.overall == 0.605
    assert result.band == "Adequate"


# ------------------------------------------------------------------------------- all of them

FRAGMENTS = st.sampled_from(
    [phrase for _, _, phrase in EVERY_PHRASE]
    + [
        "\n",
        "?",
        "*",
        "_so_",
        "word",
        "You",
        "\u2019",
        "\U0001f600",
        "\ud83d",
        "1.",
        "kill yourself",
    ]
)
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(max_size=6)), max_size=40).map(" ".join)


@given(user=TEXTS, response=TEXTS)
def test_a_score_is_its_base_and_what_fired_kept_within_the_scale(user: str, response: str) -> None:
    result = report(user, response)
    for each in result.criteria:
        assert 0.0 <= each.score <= 1.0
        total = each.base + sum(rule.amount for rule in each.trace)
        assert each.score == pytest.approx(min(1.0, max(0.0, total)), abs=1e-6)
        assert each.band is not None
        for quote in [quote for rule in each.trace for quote in rule.quotes]:
            text = user if quote.text == "user" else response
            if not quote.source.startswith("unsafe_content"):
                assert text[quote.start :].startswith(quote.words)
    weights = [0.15, 0.20, 0.20, 0.25, 0.10, 0.10]
    scores = [each.score for each in result.criteria]
    overall = sum(weight * score for weight, score in zip(weights, scores, strict=True))
    assert result.overall == pytest.approx(overall, abs=1e-6)


@given(user=TEXTS, response=TEXTS)
def test_the_same_texts_always_get_the_same_report_which_is_plain_data(
    user: str, response: str
) -> None:
    result = report(user, response)
    assert score_by_rules(AGAIN, task=user, response=response) == result
    assert msgspec.json.decode(msgspec.json.encode(result), type=AutomatedReport) == result


# --------------------------------------------------------------------------------------- C16

FUNCTIONS: dict[str, Callable[..., float]] = {
    "appropriateness": companion.evaluate_appropriateness,
    "conversational_quality": companion.evaluate_conversational_quality,
    "helpfulness": companion.evaluate_helpfulness,
    "emotional_intelligence": companion.evaluate_emotional_intelligence,
    "personalization_continuity": companion.evaluate_personalization_continuity,
    "trust_boundaries": companion.evaluate_trust_boundaries,
}
USER = "I'm so sad about work, and worried"
RESPONSE = "That must be *hard*. As we discussed, I can help you. What would be good for you?"


@pytest.mark.parametrize(("criterion_id", "function"), FUNCTIONS.items())
def test_c16_each_criterion_is_a_function_of_message_and_response(
    criterion_id: str, function: Callable[..., float]
) -> None:
    expected = report(USER, RESPONSE).scores[criterion_id]
    assert function(USER, RESPONSE) == expected
    assert function(USER, RESPONSE, context="They talked before.") == expected
    assert function(user_input=USER, response=RESPONSE, context=None) == expected


def test_c16_overall_quality_is_the_weighted_sum_of_given_scores() -> None:
    scores = {name: function(USER, RESPONSE) for name, function in FUNCTIONS.items()}
    assert companion.overall_quality(scores) == report(USER, RESPONSE).overall
    halves = dict.fromkeys(FUNCTIONS, 0.5)
    assert companion.overall_quality(halves) == 0.5
    assert companion.overall_quality(halves | {"emotional_intelligence": 1.0}) == 0.625
    assert companion.overall_quality(dict.fromkeys(FUNCTIONS, 0.7)) == 0.7


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ({"helpfulness": 0.5}, "no score for `appropriateness`, `conversational_quality`"),
        (dict.fromkeys(FUNCTIONS, 0.5) | {"helpfulnes": 0.5}, "did you mean `helpfulness`"),
        (dict.fromkeys(FUNCTIONS, 0.5) | {"helpfulness": 1.5}, "`helpfulness` is 1.5"),
        (dict.fromkeys(FUNCTIONS, 0.5) | {"helpfulness": float("nan")}, "`helpfulness` is NaN"),
        (dict.fromkeys(FUNCTIONS, 0.5) | {"helpfulness": None}, "`helpfulness` is "),
        (dict.fromkeys(FUNCTIONS, 0.5) | {"helpfulness": True}, "`helpfulness` is true, not a num"),
        (dict.fromkeys(FUNCTIONS, 0.5) | {7: 0.5}, "`7` isn't a criterion of companion"),
    ],
)
def test_c16_overall_quality_refuses_what_is_no_set_of_six_scores(
    scores: object, problem: str
) -> None:
    function: Callable[..., float] = companion.overall_quality
    with pytest.raises(InputError) as caught:
        function(scores)
    assert problem in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_c16_what_is_no_text_is_refused_in_one_clear_line(function: Callable[..., float]) -> None:
    for value, kind in ((None, "NoneType"), (7, "int"), (b"hi", "bytes")):
        for name, texts in (("user_input", (value, "Hello")), ("response", ("Hello", value))):
            with pytest.raises(InputError) as caught:
                function(*texts)
            problem = f"`{name}` has the type {kind}; give it as text"
            assert str(caught.value) == f"{function.__name__}: {problem}"


@pytest.mark.parametrize("context", ["", {}, {"age": 70}, [], [{"role": "user"}], ("Hi",)])
def test_c16_a_context_may_be_a_text_a_mapping_or_turns(context: object) -> None:
    assert companion.evaluate_trust_boundaries("", "I can help", context) == 0.9


def test_c16_a_rubric_of_the_user_s_own_does_not_change_what_the_functions_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "companion.md").write_text("nonsense")
    monkeypatch.setenv("JURYBOX_RUBRICS", str(tmp_path / "rubrics"))
    anew = importlib.reload(companion)  # as if nothing had been read yet
    assert anew.evaluate_trust_boundaries("", "I can help") == 0.9
