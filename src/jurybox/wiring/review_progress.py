"""How far people have come with a run."""

import msgspec


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far people have come.

    Attributes:
        samples: how many the run will have.
        queued: how many of those it has need a person.
        mine: how many of the queued this reviewer has reviewed.
        anyone: how many of the queued somebody has.
        reviews: how many reviews stand, of whichever samples.
        reviewers: who has reviewed.
        drawn: how many samples of the random part have been come to.
        labelled: how many of these somebody gave a label, blind.
        needed: how many more the random part needs before figures are corrected by it.
        waiting: how many reviewed samples count for nothing yet, since ``passed`` samples before
            them in the random order have no blind review.

    """

    samples: int
    queued: int
    mine: int
    anyone: int
    reviews: int
    reviewers: tuple[str, ...]
    drawn: int
    labelled: int
    needed: int
    waiting: int = 0
    passed: int = 0
