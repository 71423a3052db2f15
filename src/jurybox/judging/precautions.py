"""The bias checklist of a judge that has no opinions: what its method does against each bias."""

from collections.abc import Mapping

import msgspec

from jurybox.rubric.model import Rubric


class Precautions(msgspec.Struct, frozen=True):
    """What is done against each item of the checklist by its id, and what is said of any other.

    ``{judge}`` stands for the judge's name.
    """

    against: Mapping[str, str]
    otherwise: str

    def completed(self, checklist: Rubric, judge: str) -> dict[str, str]:
        """Return the checklist as the judge would have filled it in."""
        return {
            item.id: self.against.get(item.id, self.otherwise).format(judge=judge)
            for item in checklist.criteria
        }
