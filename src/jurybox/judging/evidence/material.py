"""The material as a small model is shown it: short names, one part a line."""

from typing import Final

from jurybox.sample import Sample

TEACHER: Final = "You are a strict teacher."


def question_part(sample: Sample) -> str:
    """Return the task, after what was said before it."""
    turns = "".join(f"{turn.role.capitalize()}: {turn.content}\n" for turn in sample.messages)
    earlier = f"Earlier in the conversation:\n{turns}" if turns else ""
    return f"{earlier}Question: {sample.task}\n"


def context_part(sample: Sample) -> str:
    """Return the context, where there is one."""
    return f"Context: {sample.context}\n" if sample.context else ""


def text_part(text: str) -> str:
    """Return a text that an answer is held against, as the teacher is shown it."""
    return f"Text: {text}\n"


def solution_part(text: str) -> str:
    """Return the right answer as the teacher is shown it."""
    return f"Correct answer: {text}\n"


def answer_part(text: str) -> str:
    """Return an answer as the teacher is shown it."""
    return f"Student's answer: {text}\n"
