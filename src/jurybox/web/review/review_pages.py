"""The pages of the review queue: the reviewer's name, the next sample, its verdicts."""

import shlex
from collections import Counter
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.app.gold_sets import gold_rows
from jurybox.app.review_desk import ReviewDesk
from jurybox.app.view_run import view_run
from jurybox.engine.records import ReviewRow, in_order
from jurybox.errors import InputError
from jurybox.reporting.export_rows import write_json_lines
from jurybox.reporting.judge_votes import StatedVote, votes_on
from jurybox.reporting.metric_text import metric_title
from jurybox.reporting.release import flag_outcome, reviews_elsewhere
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.stored import SampleRecord, plan_of, procedure_of, reading, run_title
from jurybox.review.review_input import read_reviewer
from jurybox.review.reviews import (
    ORDERS,
    QUEUES,
    REVIEW,
    Circumstances,
    Queue,
    ReviewCase,
    read_review,
)
from jurybox.web.app_state import AppState, app_state_of
from jurybox.web.error_pages import PageError
from jurybox.web.filters import PageFilter, labeled, refuse_unknown
from jurybox.web.lookup import Number, PlaceOf
from jurybox.web.pages.sample_page import Way
from jurybox.web.review.form import (
    CONCERN,
    SCORE,
    form_problem,
    given_fields,
    given_verdict,
    safety_field,
    score_fields,
    winner_field,
)
from jurybox.web.review.reveal import compared, parts_of
from jurybox.web.review.review_session import (
    REVIEWER,
    ReviewAddress,
    TheDesk,
    TheVisit,
    Visit,
    address,
    not_mine,
    queue_of,
)
from jurybox.web.security import form_of
from jurybox.web.template_engine import (
    file_name,
    page_of,
    page_response,
    paged,
    saved_as,
    segment,
    text_response,
)

_CONFLICT: Final = 409
_PATIENCE: Final = 2.0  # seconds until a page says that the reviews aren't compared yet


class DifferencesAsked(BaseModel):
    """Which differences between people and the judge the agreement page lists."""

    part: Literal["random", "flagged"] = "random"
    criterion: str = ""  # its title; empty for every criterion
    people: bool = False  # only where people differ from each other too
    page: int = Field(1, ge=1, le=1_000_000)
    sample: int | None = None  # its first row's page is shown


_Asked = Annotated[ReviewAddress, Query()]


def name_page(request: Request, desk: TheDesk, place: PlaceOf, asked: _Asked) -> Response:
    """Ask for the reviewer's name."""
    given = {"queue": asked.queue or "", "number": asked.number}
    given["reviewer"] = request.session.get(REVIEWER, "")
    return _ask_name(request, desk, place, asked, given)


def take_name(request: Request, desk: TheDesk, place: PlaceOf, asked: _Asked) -> Response:
    """Remember the reviewer's name, and show the sample that they opened, or the first one."""
    form = form_of(request)
    try:
        name = read_reviewer(form.get("reviewer", ""))
    except InputError as error:
        return _ask_name(request, desk, place, asked, form, f"{error.problem}; {error.hint}")
    if place.reviewers and name not in place.reviewers:
        problem = "the samples are assigned to others; choose one of the names"
        return _ask_name(request, desk, place, asked, form, problem)
    request.session[REVIEWER] = name
    number = form.get("number", "")
    path = f"/{number}" if number.isdecimal() else ""
    return RedirectResponse(address(desk, path, *asked.listed, queue=queue_of(form)), 303)


def agreement_page(
    request: Request, desk: TheDesk, place: PlaceOf, asked: Annotated[DifferencesAsked, Query()]
) -> Response:
    """Show the agreement of judges and reviewers, and the corrected metrics."""
    titles = [metric_title(name, desk.rubric) for name in labeled(desk.rubric)]
    refuse_unknown("criterion", asked.criterion, titles)
    found = place.agreement(desk.run).result()
    found = None if found is None else found.titled(desk.rubric)
    reviewer: str | None = request.session.get(REVIEWER)
    data = {
        "title": f"Agreement {run_title(desk.run, desk.store)[:80]}",
        "run": desk.run,
        "base": address(desk),
        "agreement": found,
        "elsewhere": [*reviews_elsewhere(plan_of(desk.run).derived_from, desk.store)],
        "differ": None if found is None else _differences(found, asked),
        "samples_url": partial(_samples_url, desk),
        "cell": found and partial(_cell, desk, found),
        "gates": {str(each): each for each in desk.rubric.gates},
        "counts": Counter(each.reviewer for each in desk.reviews()),
        "rubric": desk.rubric,
        "overlap": place.overlap,
        "samples": desk.order.size,
        "repair": desk.repair,
        "left": {queue: _has_more(desk, reviewer, queue) for queue in QUEUES[:2]},
        "commands": _commands(desk, place.at_store),
    }
    return page_response(request, "review/agreement.html", data)


def _differences(found: ReviewAgreement, asked: DifferencesAsked) -> dict[str, Any]:
    """Return a page of the samples on which the judge and people differ."""
    if found.random.agreement is None:
        asked = asked.model_copy(update={"part": "flagged"})
    every = found.differences(asked.part)
    split = [each for each in every if each[1].is_split]
    shown = split if asked.people else every
    rows = [each for each in shown if asked.criterion in {"", each[0]}]
    numbers = [each.number for _, each in rows]
    known = asked.sample is not None and asked.sample in numbers
    listed, pages = paged(rows, page_of(numbers.index(asked.sample)) if known else asked.page)
    return {
        "asked": asked,
        **pages,
        "total": len(rows),
        "rows": listed,
        # A criterion's rows are samples; with every criterion, a sample may have several.
        "samples": [*dict.fromkeys(numbers)],
        "by_criterion": Counter(name for name, _ in shown),
        "by_people": sum(asked.criterion in {"", name} for name, _ in split),
    }


def _samples_url(desk: ReviewDesk, number: int | None = None, **given: Any) -> str:  # noqa: ANN401
    """Return the address of samples with these labels, or of one; criteria have their titles."""
    for name in {"differs", "compared", "several"}.intersection(given):
        given[name] = _criterion(desk, given[name])
    one = "" if number is None else f"/{number}"
    query = PageFilter.model_validate({}).address(**given)
    return f"/runs/{segment(desk.run.id)}/samples{one}{query}"


def _criterion(desk: ReviewDesk, title: str) -> str:
    """Return the id of the criterion with this title."""
    names = (name for name in labeled(desk.rubric) if metric_title(name, desk.rubric) == title)
    return next(names, title)


def _cell(
    desk: ReviewDesk, found: ReviewAgreement, part: str, title: str, people: str, judge: str
) -> tuple[str, int]:
    """Return the address of the samples in a cell of a table of labels, and how many they are."""
    name = _criterion(desk, title)
    inside = sum(
        part in each.parts and each.compares(name, people, judge) for each in found.reviewed
    )
    return _samples_url(desk, review=part, compared=title, people=people, judge=judge), inside


def _commands(desk: ReviewDesk, at_store: str) -> dict[str, str]:
    """Return the commands that use a run's reviews, by their verb."""
    run = desk.run
    plan = plan_of(run)
    judges = [part for name in plan.judges for part in ("--judge", name)]
    gold = ["--rubric", plan.rubric.origin, "--gold", _labels_name(desk), *judges]
    made = {"gate": [run.id, "--corrected"], "estimate": [run.id], "calibrate": gold}
    return {verb: shlex.join(["jurybox", verb, *words]) + at_store for verb, words in made.items()}


def gold_file(desk: TheDesk) -> Response:
    """Answer with the reviewed samples and their labels, as `jurybox export --gold` writes them."""
    file = BytesIO()
    write_json_lines(file, {}, gold_rows(desk)[0])
    headers = saved_as(_labels_name(desk))
    return Response(file.getvalue(), media_type="application/jsonl", headers=headers)


def _labels_name(desk: ReviewDesk) -> str:
    return file_name(desk.run, desk.store, "labels", ending=".jsonl")


def next_page(visit: TheVisit) -> Response:
    """Go to the next sample of the queue, or show that none is left."""
    after = visit.asked.after
    if visit.queue == "picked":
        visit = msgspec.structs.replace(visit, queue="flagged")
    case = visit.desk.next(visit.reviewer, kind=visit.queue, after=after)
    if case is None:
        return _last_page(visit, after)
    notice = "only" if case.number == after else visit.asked.notice
    return visit.go(f"/{case.number}", **({"notice": notice} if notice else {}))


def _last_page(visit: Visit, after: int | None) -> Response:
    """Go to the next sample whose flag is still undecided, or show that the queue is done."""
    left = visit.undecided if visit.queue == "flagged" else []
    later = left[left.index(after) + 1 :] if after in left else left
    if later and visit.desk.reveals:
        return visit.go(f"/{later[0]}/judged", notice="undecided")
    view = view_run(visit.desk.run, visit.desk.store)
    mine = {each.number for each in visit.desk.reviews() if each.reviewer == visit.reviewer}
    blind = {each.number for each in visit.desk.reviews(blind=True)}
    share, enough, taken = not_mine(visit.desk, visit.reviewer, visit.queue)
    return visit.page(
        "done",
        done=len(share) - len(enough) - len(taken),
        own=len(share),
        enough=visit.named(enough),
        enough_count=len(enough),
        taken=len(taken),
        others=[each for each in visit.desk.reviewers if each != visit.reviewer],
        more=bool(not_mine(visit.desk, visit.reviewer, "random")[2] - taken),
        uncounted=visit.named(mine - blind if visit.queue == "random" else ()),
        left=visit.named(left),
        disputed=visit.named(mine.intersection(view.release.disputed)),
        view=view,
        verdict=app_state_of(visit.request).verdict(view, _PATIENCE),
    )


def _has_more(desk: ReviewDesk, reviewer: str | None, queue: Queue) -> bool:
    """Return whether a queue has a sample for a reviewer, or for any if their name isn't known."""
    names = [reviewer] if reviewer else desk.reviewers or ["a new reviewer"]
    return any(not_mine(desk, name, queue)[2] for name in names)


def case_page(visit: TheVisit, number: Number) -> Response:
    """Show a sample to be scored."""
    case = _case(visit, number)
    if case.mine is not None and not visit.asked.again and visit.desk.reveals:
        return visit.go(f"/{case.number}/judged", notice=visit.asked.notice or "known")
    return _form(visit, case, _given_before(visit, case))


def submit(visit: TheVisit, number: Number) -> Response:
    """Store the review, and continue with the next sample."""
    case, form = _case(visit, number), visit.form
    refused = _outdated(visit, case)
    if refused is not None:
        return refused
    order = form.get("order", case.order)
    shown = Circumstances(
        queue=visit.queue,
        order=order if order in ORDERS else case.order,
        blind=case.blind,
    )
    try:
        verdict = given_verdict(form, visit.desk.rubric, pair=case.is_pair)
        visit.desk.submit(
            case.number, visit.reviewer, verdict, form.get("comment", ""), shown=shown
        )
    except InputError as error:
        return _form(visit, case, form, error)
    return _saved(visit, case, form.get(CONCERN, "saved") if "decision" in form else "saved")


def _saved(visit: Visit, case: ReviewCase, notice: str) -> Response:
    if visit.desk.reveals:
        return visit.go(f"/{case.number}/judged", notice=notice)
    if visit.queue == "picked" and notice == "saved":
        notice = "picked"
    return visit.go(after=case.number, notice=notice)


def judged_page(visit: TheVisit, number: Number) -> Response:
    """Show the judges' and other reviewers' verdicts on a sample the reviewer has scored."""
    case = _case(visit, number)
    if case.mine is None:
        return visit.go(f"/{case.number}")
    if not visit.desk.reveals:
        return visit.go(f"/{case.number}", notice="known")
    revealed = visit.desk.revealed(case.number, visit.reviewer)
    if revealed.mine is None:
        return visit.go(f"/{case.number}")
    flagged = "safety" in revealed.judged.reasons
    return visit.page(
        "judged",
        case=case,
        **_links(visit, case),
        parts=parts_of(case, revealed=True),
        concerns=_concerns(visit, case),
        flagged=flagged,
        waits=flagged and not flag_outcome((revealed.mine, *revealed.others)),
        given={**given_fields(case.mine.as_data()), "comment": case.comment},
        counts=(number, visit.reviewer)
        in {(each.number, each.reviewer) for each in visit.desk.reviews(blind=True)},
        picked=_is_picked(visit, case, revealed.mine.shown.queue, revealed.mine.id),
        basis=_basis(visit, case),
        compared=compared(revealed, revealed.mine, visit.desk.rubric, _votes(visit, case)),
    )


def _votes(visit: Visit, case: ReviewCase) -> list[StatedVote]:
    """Return what each judge's vote on a response says."""
    run, store = visit.desk.run, visit.desk.store
    row = None if case.is_pair else store.sample(run.id, case.number)
    if row is None:
        return []
    with reading(run):
        record = SampleRecord(row, in_order(row, store.exchanges_of(run.id, case.number)))
        return votes_on(procedure_of(run), record)


def _concerns(visit: Visit, case: ReviewCase) -> dict[str, list[str]]:
    """Return the passages for which a judge's reply was flagged, with their categories."""
    run = visit.desk.run
    row = visit.desk.store.sample(run.id, case.number)
    with reading(run):
        report = None if row is None else SampleRecord(row).report
    found: dict[str, list[str]] = {}
    for each in () if report is None else report.safety_findings:
        found.setdefault(each.quote, []).append(each.category)
    return found


def undo(visit: TheVisit) -> Response:
    """Withdraw the reviewer's newest review, and show its sample again."""
    mine = [each for each in visit.desk.reviews() if each.reviewer == visit.reviewer]
    wanted = visit.form.get("last", "")
    # A second click, or a click in another window, must not withdraw a different review.
    if mine and wanted and mine[-1].id != wanted:
        problem = "that review is no longer your last one"
        raise PageError(_CONFLICT, problem, "nothing was changed; go back to the queue")
    row = visit.desk.undo(visit.reviewer)
    if row is None:
        return visit.go(notice="nothing")
    visit = msgspec.structs.replace(visit, queue=mine[-1].shown.queue)
    stands = visit.desk.case(row.number, visit.reviewer).mine is not None
    return visit.go(f"/{row.number}", notice="restored" if stands else "undone")


def text_page(visit: TheVisit, number: Number, part: str) -> Response:
    """Show the full text of a part that was cut on the page."""
    case = _case(visit, number)
    found = {each.name: each.text for each in parts_of(case)}
    found |= {f"message-{place}": turn.content for place, turn in enumerate(case.messages)}
    if part not in found:
        raise PageError(404)
    return text_response(found[part])


def _ask_name(
    request: Request,
    desk: ReviewDesk,
    place: AppState,
    asked: ReviewAddress,
    given: Mapping[str, str],
    problem: str = "",
) -> Response:
    data = {
        "title": "Who is reviewing?",
        "run": desk.run,
        "action": address(desk, "/name", *asked.listed),
        "queue": queue_of(given),
        "number": given.get("number", ""),
        "reviewer": given.get("reviewer", "")[:200],
        "known": desk.progress().reviewers,
        "assigned": place.reviewers,
        "overlap": place.overlap,
        "reveals": desk.reveals,
        "problem": problem,
    }
    return page_response(request, "review/name.html", data, 400 if problem else 200)


def _case(visit: Visit, number: int) -> ReviewCase:
    try:
        case = visit.desk.case(number, visit.reviewer, queue=visit.queue)
    except InputError as error:
        raise PageError(404, error.problem, error.hint) from None
    # A reviewer who picks a sample comes from its page, which shows the judges' verdict.
    return msgspec.structs.replace(case, blind=case.blind and visit.queue != "picked")


def _form(
    visit: Visit, case: ReviewCase, given: Mapping[str, str], error: InputError | None = None
) -> Response:
    fields = (winner_field(visit.desk.rubric),) if case.is_pair else score_fields(visit.desk.rubric)
    return visit.page(
        "case",
        200 if error is None else 400,
        case=case,
        **_links(visit, case),
        parts=parts_of(case),
        fields=fields,
        digits=any((choice.key or "").isdigit() for each in fields for choice in each.choices),
        typed=any(each.low is not None for each in fields),
        safety=safety_field(pair=case.is_pair),
        given=given,
        problem="" if error is None else form_problem(error, visit.desk.rubric, pair=case.is_pair),
        faults=[] if error is None else [each + error.where for each in (SCORE, "")],
        basis=_basis(visit, case),
        picked=_is_picked(visit, case, visit.queue),
    )


def _links(visit: Visit, case: ReviewCase) -> dict[str, Any]:
    """Return where to go from a sample; a picked one leads back to its page and its list."""
    way: Way | None = None
    if visit.queue == "picked" and visit.desk.reveals:
        place, row = app_state_of(visit.request), visit.desk.stored(case.number).row
        way = visit.asked.way(place, visit.desk.run, row)
        if visit.asked.then is None:
            then = way.then if way.next else case.number
            asked = visit.asked.model_copy(update={"then": then})
            visit = msgspec.structs.replace(visit, asked=asked)
    sample = f"/runs/{segment(visit.desk.run.id)}/samples/{case.number}"
    return {
        "way": way,
        "here": visit.link(f"/{case.number}"),
        "again_link": visit.link(f"/{case.number}", again=1),
        "next_link": visit.link(after=case.number),
        "sample_link": sample + (way.here if way else ""),
    }


def _is_picked(visit: Visit, case: ReviewCase, queue: Queue, own: str = "") -> bool:
    """Return whether a review doesn't count because the sample was picked.

    Otherwise it is because the reviewer saw the verdict after a review before this one, ``own``.
    """
    return queue == "picked" and all(each.id == own for each in _own_rows(visit, case)[:1])


def _own_rows(visit: Visit, case: ReviewCase) -> list[ReviewRow]:
    rows = visit.desk.store.reviews_of(visit.desk.run.id, case.number)
    return [row for row in rows if row.reviewer == visit.reviewer]


def _basis(visit: Visit, case: ReviewCase) -> str:
    """Return the id of the reviewer's last action on a sample, which a form is based on."""
    rows = _own_rows(visit, case)
    return rows[-1].id if rows else ""


def _given_before(visit: Visit, case: ReviewCase) -> dict[str, str]:
    """Return the form's initial values: the reviewer's last verdict, even if withdrawn.

    A reviewer who undoes usually wants to change one thing.
    """
    made = [row for row in _own_rows(visit, case) if row.action == REVIEW]
    if not made:
        return {}
    last = read_review(made[-1])
    verdict = last.verdict.in_order(case.order).as_data()
    return {**given_fields(verdict), "comment": last.comment}


def _outdated(visit: Visit, case: ReviewCase) -> Response | None:
    """Refuse an outdated form; sending the same verdict twice is harmless."""
    form = visit.form
    opened_by = form.get("reviewer", visit.reviewer)
    if opened_by != visit.reviewer:
        problem = f"this page was opened by {opened_by}, but the reviewer is now {visit.reviewer}"
        raise PageError(_CONFLICT, problem, "nothing was saved; go back to the queue")
    if "basis" not in form or form["basis"] == _basis(visit, case):
        return None
    if case.mine is not None:
        given = given_verdict(form, visit.desk.rubric, pair=case.is_pair)
        same = case.mine.as_data() == given and case.comment == form.get("comment", "").strip()
        if same:
            return _saved(visit, case, "known")
        problem = "you have already reviewed this sample, perhaps in another window"
        raise PageError(_CONFLICT, problem, "nothing was changed; look at your earlier review")
    problem = "your review of this sample was taken back since this page was opened"
    raise PageError(_CONFLICT, problem, "nothing was saved; open the sample again")
