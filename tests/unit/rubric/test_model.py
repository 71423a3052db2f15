from jurybox.rubric import Criterion, Level, Rubric, Scale
from jurybox.rubric.rubric_model import Band

UNIT = Scale(low=0.0, high=1.0, continuous=True)
HALVES = (
    Level(low=0.5, high=1.0, meaning="upper", label="Upper"),
    Level(low=0.0, high=0.4, meaning="lower", label="Lower"),
)


def rubric(
    sha256: str = "",
    title: str = "T",
    bands: tuple[Band, ...] = (),
    band_decimals: int = 0,
    without_response: dict[str, float] | None = None,
) -> Rubric:
    criterion = Criterion(
        id="tone",
        name="Tone",
        scale=UNIT,
        levels=HALVES,
        level_columns=("Score", "Label", "Meaning"),
        level_decimals=1,
    )
    return Rubric(
        id="t",
        version="1",
        title=title,
        scale=UNIT,
        criteria=(criterion,),
        bands=bands,
        band_decimals=band_decimals,
        without_response=without_response or {},
        sha256=sha256,
    )


def test_c11_the_decimals_are_those_written_and_not_those_needed() -> None:
    levels = (
        Level(low=0.5, high=1.0, meaning="upper", label="Upper"),
        Level(low=0.0, high=0.49, meaning="lower", label="Lower"),
    )
    criterion = Criterion(id="a", name="A", scale=UNIT, levels=levels, level_decimals=2)
    found = [criterion.band(score) for score in (0.494, 0.495, 0.5)]
    assert [level.label for level in found if level] == ["Lower", "Upper", "Upper"]


def test_a_score_between_described_points_has_no_level() -> None:
    levels = (Level(low=5, high=5, meaning="right"), Level(low=1, high=1, meaning="wrong"))
    criterion = Criterion(id="a", name="A", scale=Scale(low=1, high=5), levels=levels)
    assert criterion.band(5) == levels[0]
    assert criterion.band(3) is None
    assert Criterion(id="a", name="A", scale=UNIT).band(0.5) is None


def test_a_band_written_with_two_decimals_begins_half_a_hundredth_below() -> None:
    bands = (Band(label="Good", low=0.7), Band(label="Poor", low=0.0))
    made = rubric(bands=bands, band_decimals=2)
    found = [made.band(score) for score in (0.7, 0.695, 0.694, 0.65)]
    assert [band.label for band in found if band] == ["Good", "Good", "Poor", "Poor"]


def test_equality_is_about_what_a_rubric_says_and_not_its_bytes() -> None:
    assert rubric(sha256="a") == rubric(sha256="b")
    assert hash(rubric(sha256="a")) == hash(rubric(sha256="b"))
    assert rubric(title="T") != rubric(title="U")
    assert rubric() != "T"
