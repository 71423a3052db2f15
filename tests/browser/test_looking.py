"""From the list of runs to one sample, as a reader goes; and a run that is looked at as it goes."""

import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from commands import JURYBOX
from stage import Server, Stage, rows, run, running, write_suite


def test_a_reader_finds_a_sample(page: Page, served: Server) -> None:
    page.goto(served.url)
    runs = page.get_by_role("region", name="Runs")
    runs.get_by_role("link", name="desk-2").click()
    expect(page.get_by_role("heading", name="Needs attention")).to_be_visible()
    expect(page.locator(".concern .kind").first).to_be_visible()
    page.get_by_role("link", name="All samples").click()
    expect(page.get_by_role("status")).to_contain_text("of 24 samples")
    page.get_by_role("link", name=re.compile("^low confidence")).click()
    page.get_by_label("Scenario").select_option("home")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("status")).to_contain_text("1 to 6 of 6 samples")
    page.get_by_role("link", name=re.compile("^low confidence")).click()
    page.get_by_label("Search").fill("question 11:")
    page.get_by_label("Scenario").select_option("")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("status")).to_contain_text("1 to 1 of 1 sample")
    page.get_by_role("link", name="q11").click()
    expect(page.get_by_role("heading", name="Sample q11")).to_be_visible()
    expect(page.locator("main")).to_contain_text("Reason of the judge: question 11")


def test_a_late_verdict_appears_in_the_list_without_a_reload(
    page: Page, served: Server, stage: Stage
) -> None:
    cell = f'<td id="verdict-{stage.runs["desk"]}"'

    def too_early(route: Route) -> None:
        answer = route.fetch()
        text = answer.text().replace(
            "</head>", '<script src="/static/runs.js" defer></script></head>'
        )
        route.fulfill(response=answer, body=text.replace(f"{cell}>", f"{cell} data-late>Later "))

    page.route(f"{served.url}/", too_early, times=1)
    page.goto(served.url)
    box = page.get_by_label(f"compare {stage.runs['desk']}")
    box.check()
    late = page.locator(f"#verdict-{stage.runs['desk']}")
    expect(late).to_contain_text("Later")
    expect(late).not_to_contain_text("Later")
    expect(late.locator(".badge")).to_be_visible()
    expect(box).to_be_checked()


def test_samples_are_sorted_by_the_store(page: Page, served: Server, stage: Stage) -> None:
    page.goto(f"{served.url}/runs/{stage.runs['desk']}/samples")
    page.get_by_role("link", name="latency (ms)").click()
    page.get_by_role("link", name="latency (ms)").click()
    expect(page.get_by_role("rowheader").first).to_have_text(re.compile("q(0|23)"))
    expect(page.locator("th[aria-sort]")).to_have_count(1)


def test_samples_are_read_by_keyboard_alone(page: Page, served: Server, stage: Stage) -> None:
    page.goto(f"{served.url}/runs/{stage.runs['desk']}/samples?sort=number")
    for key in ("j", "j", "j", "k", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", name="Sample q1", exact=True)).to_be_visible()
    # What is typed before the script is there is lost.
    page.wait_for_load_state()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Sample q2", exact=True)).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="Sample q1", exact=True)).to_be_visible()
    page.go_back()
    page.goto(f"{served.url}/runs/{stage.runs['desk']}/samples")
    page.keyboard.press("/")
    page.keyboard.type("question 11:")
    page.keyboard.press("Enter")
    expect(page.locator("tbody mark").first).to_have_text("Question 11:")


def test_a_conversation_is_unfolded_and_read_as_written(
    page: Page, served: Server, stage: Stage
) -> None:
    page.goto(f"{served.url}/runs/{stage.runs['desk']}/samples/3")
    turns = page.locator(".messages > div")
    expect(turns.filter(visible=True)).to_have_text([re.compile("^2 user"), re.compile("^3 assi")])
    page.get_by_text("1 older message").click()
    expect(turns.filter(visible=True)).to_have_count(3)
    switch = page.get_by_label("as written")
    expect(turns.nth(2).locator("strong")).to_be_visible()
    switch.check()
    expect(turns.nth(2).locator("strong")).to_be_hidden()
    expect(turns.nth(0)).to_contain_text("Be *brief*.")
    expect(turns.nth(1)).to_contain_text("My lamp blinks.")
    switch.blur()
    page.keyboard.press("End")
    expect(page.get_by_role("heading", name="Sample q3")).to_be_in_viewport()
    page.keyboard.press("r")
    expect(page.get_by_label("Name", exact=True)).to_be_visible()


def test_a_command_is_copied_by_keyboard(page: Page, served: Server, stage: Stage) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    run_id = stage.runs["desk"]
    page.goto(f"{served.url}/runs/{run_id}")
    command = f"jurybox verify {run_id} --store {stage.store}"
    copy = page.get_by_role("button", name=f"copy {command}")
    copy.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=f"copied {command}")).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_a_hash_that_is_shortened_is_copied_whole(page: Page, served: Server) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{served.url}/rubrics/help-desk")
    shown = page.locator("code[title]")
    copy = page.get_by_role("button", name=f"copy {shown.text_content()}")
    copy.click()
    expect(page.get_by_text("copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == shown.get_attribute("title")
    assert len(copied) == 64


def test_a_text_is_copied_as_it_is_not_as_it_is_laid_out(
    page: Page, served: Server, stage: Stage
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    address = f"{served.url}/runs/{stage.runs['desk']}/samples/0"
    page.goto(address)
    page.get_by_role("button", name="copy Response").click()
    expect(page.get_by_role("button", name="copied Response")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.request.get(f"{address}/text/response").text() != ""


def test_a_browser_without_a_clipboard_offers_no_copy(
    page: Page, served: Server, stage: Stage
) -> None:
    page.add_init_script("Object.defineProperty(Navigator.prototype, 'clipboard', {value: null})")
    page.goto(f"{served.url}/runs/{stage.runs['desk']}")
    expect(page.locator("code[data-copy]").first).to_be_visible()
    expect(page.get_by_role("button", name="copy")).to_have_count(0)


def test_once_a_run_is_chosen_the_button_that_compares_is_in_sight(
    page: Page, served: Server
) -> None:
    page.set_viewport_size({"width": 400, "height": 500})
    page.goto(served.url)
    button = page.get_by_role("button", name="Compare the chosen runs")
    expect(button).not_to_be_in_viewport()
    page.get_by_role("checkbox").first.check()
    expect(button).to_be_in_viewport(ratio=1)


def test_in_the_file_of_a_comparison_each_kind_of_change_opens_one_list(
    page: Page, tmp_path: Path, stage: Stage
) -> None:
    file = tmp_path / "compared.html"
    runs = stage.runs["desk"], stage.runs["kinder"]
    subprocess.run([JURYBOX, "diff", *runs, "--store", stage.store, "-o", file], check=True)
    page.goto(file.as_uri())
    kinds = page.get_by_role("navigation", name="Which samples").get_by_role("link")
    expect(page.locator(".listed-kind:visible")).to_have_count(0)
    for kind in ("higher", "unchanged"):
        kinds.filter(has_text=kind).click()
        expect(page.locator(".listed-kind:visible")).to_have_count(1)
        expect(page.locator(".listed-kind:visible")).to_contain_text(kind)
        expect(kinds.first).to_be_in_viewport()


def test_the_keys_go_on_to_the_next_page_and_back(page: Page, tmp_path: Path, own: Server) -> None:
    folder = tmp_path / "many"
    write_suite(folder, rows(51), judges="[python/judges:kind]")
    page.goto(f"{own.url}/runs/{run(folder, own.store)}/samples?sort=number")
    for _ in range(51):
        page.keyboard.press("j")
    expect(page.get_by_role("status")).to_contain_text("51 to 51 of 51 samples")
    expect(page.get_by_role("link", name="q50", exact=True)).to_be_focused()
    for key in ("u", "Escape"):  # to the row from which a sample was opened
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Sample q50")).to_be_visible()
        page.wait_for_load_state()
        page.keyboard.press(key)
        expect(page.get_by_role("status")).to_contain_text("51 to 51 of 51 samples")
        expect(page.get_by_role("link", name="q50", exact=True)).to_be_focused()
    page.keyboard.press("k")
    expect(page.get_by_role("status")).to_contain_text("1 to 50 of 51 samples")
    expect(page.get_by_role("link", name="q49", exact=True)).to_be_focused()


@pytest.mark.parametrize(
    "path", ["/compare?a={desk}&b={kinder}", "/side-by-side?run={desk}&run={kinder}"]
)
def test_compared_outputs_are_read_by_keyboard(
    page: Page, served: Server, stage: Stage, path: str
) -> None:
    page.goto(served.url + path.format(**stage.runs))
    samples = page.locator("table.outputs tbody th a:visible")
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    expect(samples.nth(0)).to_be_focused()
    name = samples.nth(1).text_content()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Sample {name}", exact=True)).to_be_visible()
    page.get_by_role("link", name="Back to the comparison").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(
        re.compile("compared|side by side")
    )
    # The keys go on from the row of the sample that was opened.
    expect(samples.nth(1)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sample ")).to_be_visible()
    page.go_back()
    expect(samples.nth(2)).to_be_focused()
    page.keyboard.press("k")
    expect(samples.nth(1)).to_be_focused()


def test_verdicts_reasons_and_texts_of_compared_outputs_line_up(
    page: Page, served: Server, stage: Stage
) -> None:
    page.goto(
        served.url + "/side-by-side?run={desk}&run={kinder}&run={reviewed}".format(**stage.runs)
    )
    tops = page.locator("table.outputs > tbody > tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1).map("
        "cell => [...cell.children].map(part => Math.round(part.getBoundingClientRect().top))))"
    )
    seen = [columns for columns in tops if columns[0][0]]  # not those that are folded away
    assert seen
    assert all(columns == [columns[0]] * 3 for columns in seen)


def test_the_page_of_a_run_follows_it(page: Page, tmp_path: Path, own: Server) -> None:
    folder = tmp_path / "live"
    write_suite(folder, rows(6), judges="[python/judges:patient]")
    with running(folder, own.store) as process:
        assert process.stderr is not None
        run_id = re.search(r"run (\S+):", process.stderr.readline().decode())
        assert run_id
        page.goto(f"{own.url}/runs/{run_id[1]}")
        expect(page.locator("main")).to_contain_text("3 of 6 samples")
        (folder / "go").touch()
        expect(page.locator("#news")).to_have_text("The run is finished.")
        expect(page.get_by_role("link", name="All samples (6)")).to_be_visible()
        process.communicate()


def test_a_report_holds_all_samples_and_finds_them_without_a_server(
    page: Page, report: str
) -> None:
    page.goto(report)
    status = page.locator("#all-samples").get_by_role("status")
    expect(status).to_have_text("24 samples")
    # On one line, and each word begins where its field does.
    fields = page.locator("#all-samples .filters").locator("input, select")
    boxes = [fields.nth(at).bounding_box() or {} for at in (0, 1)]
    labels = [page.locator("#all-samples label").nth(at).bounding_box() or {} for at in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert [each["x"] for each in boxes] == [each["x"] for each in labels]
    page.get_by_label("Search").fill("question 11:")
    expect(status).to_have_text("1 of 24 samples")
    marks = page.locator("#all-samples summary mark")
    expect(marks).to_have_text(["Question 11:", "question 11:"])  # in the task and the response
    # A match in a text that is folded away is quoted, also in a reply that can't be read.
    page.get_by_label("Search").fill("rather not say")
    expect(status).to_have_text("1 of 24 samples")
    expect(page.locator("#sample-7 .card-why mark").last).to_have_text("rather not say")
    # So is one in an earlier message, not in their count.
    page.get_by_label("Search").fill("message")
    expect(status).to_have_text("1 of 24 samples")
    quoted = page.locator("#sample-3 .card-why").last
    expect(quoted).to_have_text("2 user: My lamp blinks. A message?")
    page.get_by_label("Search").fill("nothing like it")
    expect(status).to_have_text("None of 24 samples matches")
    # Every count leads to as many samples as it says.
    for link in page.locator("#failures a, #attention strong a, #scenarios a, #jury a").all():
        link.click()
        expect(status).to_have_text(f"{link.inner_text().split()[0]} of 24 samples")
        flag = re.search(r"flag=(\w+)", link.get_attribute("href") or "")
        only = page.get_by_role("combobox", name="Only")
        offered = "" if flag is None else flag[1]
        shown = only.locator(f"option[value='{offered}']").count()
        expect(only).to_have_value(offered if shown else "")
    # What is asked for is named as in the report, not as in addresses.
    for asked, words in {
        "agreement.tone&high=0": "Only no majority on Tone",
        "win.tone&low=1&high=1": "Only response A better on Tone",
        "tone&low=2": "Only Tone >= 2",
    }.items():
        page.evaluate("asked => { location.hash = `all-samples?metric=${asked}`; }", asked)
        expect(page.locator("[data-asked] strong")).to_have_text(words)
    # A sorted list says by what and which way, and each row has its value.
    values = list[int]()
    for way in ("lowest", "highest"):
        asked = f"sort=metric:correctness&descending={'true' if way == 'highest' else 'false'}"
        page.evaluate("asked => { location.hash = `all-samples?${asked}`; }", asked)
        expect(page.locator("[data-asked] strong")).to_have_text(f"By Correctness, the {way} first")
        line = page.locator("#all-samples .card").first.locator(".card-why").first
        values.append(int(line.inner_text().removeprefix("Correctness: ")))
        expect(page.get_by_text("worst first")).to_be_hidden()
    assert values[0] < values[1]
    page.get_by_role("link", name="show all").click()
    expect(status).to_have_text("24 samples")


def test_a_report_is_read_by_keyboard_and_printed(page: Page, report: str) -> None:
    page.goto(report)
    status = page.locator("#all-samples").get_by_role("status")
    expect(status).to_have_text("24 samples")
    for key in ("j", "j", "k", "j", "Enter"):
        page.keyboard.press(key)
    assert page.locator("#all-samples .card").nth(1).get_attribute("open") is not None
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.get_by_role("link", name="q5").first.click()
    shown = page.locator("#sample-5")
    expect(shown).to_contain_text("Answer one to question 5")
    expect(shown).to_contain_text("referenceHold the switch for five seconds.")
    expect(shown).to_contain_text("It tells people to mix bleach.")
    # On paper a sample that fails has its texts, one that passes a line, unless it has a concern.
    page.goto(report)
    expect(status).to_have_text("24 samples")
    page.pdf()
    page.emulate_media(media="print")
    expect(page.locator("#all-samples .filters, nav").filter(visible=True)).to_have_count(0)
    cards = page.locator("#all-samples .card")
    failing = cards.filter(has_not=page.locator(".passes"))
    assert failing.count() == failing.locator("dl.texts:visible").count() > 0
    passing = cards.filter(has=page.locator(".passes"))
    assert passing.filter(has=page.locator("dl.texts:visible")).count() == 1
    assert shown.locator("dl.texts").is_visible()
    # It says which samples it has, if only some match.
    page.emulate_media(media="screen")
    page.evaluate("location.hash = 'all-samples?flag=failed'")
    page.get_by_label("Search").fill("question")
    found = (status.text_content() or "").split()[0]
    page.pdf()
    paper = f"Only failed, “question”: {found} of {found} samples are printed"
    expect(page.locator("[data-paper]")).to_contain_text(paper)
    assert cards.count() == int(found) < 24


def test_paper_has_the_texts_of_a_safety_concern_before_those_of_worse_samples(
    page: Page, tmp_path: Path
) -> None:
    store, file = tmp_path / "runs.db", tmp_path / "report.html"
    many = rows(206)
    write_suite(tmp_path, [*many[4::4], many[5]], judges="[python/judges:third]")
    subprocess.run(
        [JURYBOX, "report", run(tmp_path, store), "--store", store, "-o", file], check=True
    )
    page.goto(file.as_uri())
    expect(page.locator("#all-samples").get_by_role("status")).to_contain_text("52 samples")
    page.pdf()
    page.emulate_media(media="print")
    paper = "52 of 52 samples are printed, the worst first, 50 of them with their texts."
    expect(page.locator("[data-paper]")).to_have_text(paper)
    cards = page.locator("#all-samples .card")
    expect(cards.last).to_contain_text("It tells people to mix bleach.")
    expect(cards.last.locator("dl.texts")).to_be_visible()
