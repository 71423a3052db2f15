"""What must hold before a review is stored; within the transaction that stores it."""

from jurybox.errors import InputError
from jurybox.running.records import ReviewRow
from jurybox.storage import statements
from jurybox.storage.database import Session


def check_review(session: Session, row: ReviewRow) -> None:
    """See that what is reviewed, or withdrawn, is there.

    Raises:
        InputError: it isn't.

    """
    where = f"run {row.run_id}"
    found = session.rows(statements.RECORD_OF, (row.run_id, row.number))
    if not found:
        raise InputError(f"it has no sample number {row.number}", "review one that it has", where)
    if found != [(row.record_sha256,)]:
        raise InputError(
            f"sample number {row.number} is another one than was reviewed",
            "look at it again",
            where,
        )
    if (row.action, row.of is None) not in {("review", True), ("withdrawal", False)}:
        raise InputError(
            "a review withdraws nothing, and a withdrawal names the review that it is of",
            "give either",
            where,
        )
    place = (row.of, row.run_id, row.number)
    if row.of is not None and not session.rows(statements.REVIEW_TO_WITHDRAW, place):
        raise InputError(
            f"there is no review `{row.of}` of sample number {row.number}",
            "withdraw one that there is",
            where,
        )
