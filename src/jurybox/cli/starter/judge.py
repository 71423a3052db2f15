"""A judge without a model: it compares words, so that the suite runs without a key or a network.

It stands in for a model until you name one in suite.yaml. It doesn't understand meanings: a right
answer in other words may count as wrong, and a wrong answer that uses only words of the context
counts as faithful.
"""

import json
import re

# The inputs as the prompt of the rubric `answer-quality` lists them.
INPUTS = re.compile(
    r"^- task: (.*?)\n- reference_answer: (.*?)\n- provided_context: (.*?)\n"
    r"- candidate_answer: (.*)\n\nINSTRUCTIONS$",
    re.DOTALL | re.MULTILINE,
)
SMALL_WORDS = (
    "a about an and are as at by did do does for from has have how in is it its many much of on or"
    " that the their there these they this those to was were what when where which who why with"
)
HALF, THIRD = 1 / 2, 1 / 3


def strict(prompt: str) -> str:
    """Return the verdict on one answer, as the JSON that the prompt asks for."""
    found = INPUTS.search(prompt)
    if found is None:
        return "This is not the prompt of the rubric `answer-quality`."
    task, reference, context, candidate = (words(text) for text in found.groups())
    missing = [word for word in reference if word not in candidate]
    unsupported = [word for word in candidate if word not in {*task, *reference, *context}]
    verdict = {
        "accuracy_score": accuracy(missing, reference),
        "faithfulness_score": faithfulness(unsupported, candidate),
        "rationale": f"missing from the answer: {listed(missing)}; "
        f"supported by nothing: {listed(unsupported)}",
    }
    return json.dumps(verdict)


def words(text: str) -> list[str]:
    """Return the words that carry meaning, each once, in their order."""
    small = SMALL_WORDS.split()
    every = re.findall(r"[^\W_]+", text.lower())
    return [word for word in dict.fromkeys(every) if word not in small]


def accuracy(missing: list[str], reference: list[str]) -> int:
    """Return 2 if no word of the reference is missing, 1 if at most half are missing, else 0."""
    if not reference:
        return 0  # nothing to compare the answer with
    if not missing:
        return 2
    return 1 if len(missing) <= HALF * len(reference) else 0


def faithfulness(unsupported: list[str], candidate: list[str]) -> int:
    """Return 2 if all words are supported, 0 if a number or too many words aren't, else 1."""
    if not unsupported:
        return 2
    invented = any(word.isdigit() for word in unsupported)
    return 0 if invented or len(unsupported) > THIRD * len(candidate) else 1


def listed(some: list[str]) -> str:
    """Return the first few words of a list."""
    return ", ".join(some[:5]) or "nothing"
