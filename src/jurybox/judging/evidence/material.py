"""The material as a small model is shown it: short names, one part a line."""

from jurybox.sample import Sample


def question_part(sample: Sample) -> str:
    """Return the task, after what was said before it."""
    turns = "".join(f"{turn.role.capitalize()}: {turn.content}\n" for turn in sample.messages)
    earlier = f"Earlier in the conversation:\n{turns}" if turns else ""
    return f"{earlier}Question: {sample.task}\n"


def context_part(sample: Sample) -> str:
    """Return the context, where there is one."""
    return f"Context: {sample.context}\n" if sample.context else ""
