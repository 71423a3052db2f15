"""What a corrected estimate says."""

import msgspec

from jurybox.statistics.result import Figure


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean that the judge gives on all samples and people on some.

    Attributes:
        judge: what the judge alone says, over all samples; its interval knows nothing of the
            judge's errors.
        human: what people alone say, over the labelled samples.
        corrected: both together; no figure where the labels are too few.
        tuning: how far the judge is trusted: 0 leaves it out, 1 takes it at its word (lambda).
        bias: the judge's mean less people's, on the labelled samples.
        clusters: how many independent groups the labelled samples form, where that was said.
        effective_labels: how many labels people would need to be as sure without the judge.
        labels_to_halve: how many more labels would make the corrected interval half as wide;
            ``None`` where no number of labels on these samples would, and with clusters, where it
            depends on which samples are labelled.
        reason: why a figure is missing, in words.
        sentence: all that in plain words.

    """

    judge: Figure
    human: Figure
    corrected: Figure
    tuning: float | None = None
    bias: float | None = None
    clusters: int | None = None
    effective_labels: float | None = None
    labels_to_halve: int | None = None
    reason: str | None = None
    sentence: str = ""


class CorrectedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate corrected by how often the judge is right on yes and on no.

    Attributes:
        apparent: the judge's rate on the samples without labels.
        sensitivity: how often the judge says yes where people do.
        specificity: how often the judge says no where people do.
        corrected: the corrected rate, between 0 and 1.
        unclipped: the formula's value where it lies outside of 0 and 1.
        reason: why there is none, in words.

    """

    apparent: Figure
    sensitivity: Figure
    specificity: Figure
    corrected: Figure
    unclipped: float | None = None
    reason: str | None = None
