"""The tables and the rows that they hold; the migrations make them, and a test compares both.

The columns are those of the rows in `jurybox.running.records` and of the facets in
`jurybox.scoring.facets`, but in the tables the long ones come
last: SQLite reads a row from its beginning, and a result or a hash is wanted more often than a
whole request. So a statement names its columns, in the order of the row's fields.
A request is stored in two parts (see `jurybox.storage.framing`), and read as one.
"""

from typing import Final

from jurybox.running.records import (
    AnyRow,
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    ReviewRow,
    RunRow,
    SampleRow,
)
from jurybox.scoring.facets import Facets

RUNS: Final = "runs"
SAMPLES: Final = "samples"
EXCHANGES: Final = "exchanges"
BATCHES: Final = "batches"
FRAMES: Final = "frames"
CALIBRATIONS: Final = "calibrations"
FACETS: Final = "facets"
REVIEWS: Final = "reviews"
SCHEMA: Final = "jurybox_schema"

ROWS: Final[dict[str, type[AnyRow | Facets]]] = {
    RUNS: RunRow,
    SAMPLES: SampleRow,
    EXCHANGES: ExchangeRow,
    BATCHES: BatchRow,
    CALIBRATIONS: CalibrationRow,
    FACETS: Facets,
    REVIEWS: ReviewRow,
}
NAMES: Final = frozenset({*ROWS, FRAMES, SCHEMA})
