"""Tools for agents, through the Model Context Protocol."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import wraps
from itertools import count
from typing import Annotated, Any, Final, TypeVar

import msgspec
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from pydantic import Field

from jurybox import __version__
from jurybox.app import evaluate_once
from jurybox.app.run_suite import arun
from jurybox.app.view_run import view_as_data, view_run
from jurybox.errors import InputError, JuryboxError
from jurybox.reporting.export_rows import record_as_data
from jurybox.reporting.stored import find_record
from jurybox.rubric_files import checked_as_data, listed_as_data
from jurybox.text_format import listed, nearest
from jurybox.wiring import find_run, load_rubric, open_run_store, rubric_files

T = TypeVar("T")
Data = dict[str, Any]
Call = Context[Any, Any]

RubricArgument = Annotated[str, Field(description="a rubric's name or path")]
TaskArgument = Annotated[str, Field(description="the task or question")]
ResponseArgument = Annotated[str, Field(description="the response to judge")]
OtherArgument = Annotated[str, Field(description="the response to compare it with")]
SecondArgument = Annotated[str | None, Field(description="a second response to compare")]
ReferenceArgument = Annotated[str | None, Field(description="the right answer to score against")]
ContextArgument = Annotated[str | None, Field(description="what the system under test was given")]
JudgesArgument = Annotated[
    list[str], Field(description="judge models, such as openai/gpt-4.1-2025-04-14")
]
VotesArgument = Annotated[
    int | None, Field(ge=1, le=99, description="the number of votes; by default the rubric's")
]

_INSTRUCTIONS: Final = (
    "Judges responses of language models, and code changes, against a rubric. `evaluate` and"
    " `compare` ask judge models. To judge yourself, call `prompt`, answer exactly what it asks,"
    " give your replies to `check_reply`, and report its decision, not your own."
)


class _StrictServer(MCPServer[Any]):
    """Refuses unknown arguments, which the library would ignore."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; refuse unknown arguments."""
        schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
        known = schemas.get(name, {"properties": arguments})["properties"]
        for each in arguments:
            if each not in known:
                hint = nearest(each, known, f"`{name}` has {listed(known)}")
                return _failed(InputError(f"there is no argument `{each}`", hint))
        return await super().call_tool(name, arguments, context)


def _failed(error: JuryboxError) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=str(error))], is_error=True)


def mcp_server(store: str | None) -> MCPServer[Any]:
    """Return the server with its tools; ``store`` is where runs are stored."""
    server = _StrictServer(
        "jurybox", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    first = (evaluate, compare, *_tools_of(store))
    for tool in (*first, list_rubrics, check_rubric, prompt, check_reply):
        server.add_tool(_answering(tool), structured_output=False)
    return server


def _answering(tool: Callable[..., Awaitable[Data]]) -> Callable[..., Awaitable[CallToolResult]]:
    """Wrap a tool, so that its result is JSON and its errors are the messages of commands."""

    @wraps(tool)
    async def answer(*arguments: object, **named: object) -> CallToolResult:
        try:
            text = msgspec.json.encode(await tool(*arguments, **named)).decode()
        except JuryboxError as error:
            return _failed(error)
        # Decoded again, because the library accepts only the types of JSON.
        data = msgspec.json.decode(text)
        return CallToolResult(content=[TextContent(text=text)], structured_content=data)

    return answer


class _Reporter:
    """Reports progress to the client; can be called from synchronous code."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._tasks: list[asyncio.Task[None]] = []

    def __call__(self, done: int, total: int | None, message: str) -> None:
        sending = self._call.report_progress(done, total, message)
        self._tasks.append(asyncio.create_task(sending))

    async def during(self, work: Awaitable[T]) -> T:
        """Do the work, then wait until all progress is reported."""
        try:
            return await work
        finally:
            await asyncio.gather(*self._tasks)


async def evaluate(
    rubric: RubricArgument,
    task: TaskArgument,
    response: ResponseArgument,
    call: Call,
    reference: ReferenceArgument = None,
    context: ContextArgument = None,
    judges: JudgesArgument = [],
    votes: VotesArgument = None,
) -> Data:
    """Judge one response by a rubric, and return the report with its decision."""
    return await _judged(**locals())


async def compare(
    rubric: RubricArgument,
    task: TaskArgument,
    response: ResponseArgument,
    response_b: OtherArgument,
    call: Call,
    reference: ReferenceArgument = None,
    context: ContextArgument = None,
    judges: JudgesArgument = [],
    votes: VotesArgument = None,
) -> Data:
    """Compare two responses by a rubric, each vote in both orders, and return the report."""
    return await _judged(**locals())


async def _judged(call: Call, rubric: str, **given: Any) -> Data:  # noqa: ANN401 - of `aevaluate`
    report, answered, loaded = _Reporter(call), count(1), load_rubric(rubric)

    def exchanged(*_: object) -> None:
        number = next(answered)
        report(number, None, f"{number} calls answered")

    judged = evaluate_once.aevaluate(rubric=loaded, on_exchange=exchanged, **given)
    return evaluate_once.conclude_single(await report.during(judged), loaded).as_data()


def _tools_of(store: str | None) -> Iterator[Callable[..., Awaitable[Data]]]:
    """Yield the tools that use the store."""

    async def run(
        suite: Annotated[str, Field(description="a suite's path, or the name of a bundled one")],
        call: Call,
        rubric: Annotated[
            str | None, Field(description="a rubric to use instead of the suite's")
        ] = None,
        target: Annotated[
            str | None, Field(description="a model to test instead of the suite's")
        ] = None,
        judges: JudgesArgument = [],
        limit: Annotated[int | None, Field(ge=1, description="how many rows to use")] = None,
    ) -> Data:
        """Run a suite: answer and judge every sample, and return metrics, gates and decision."""
        report = _Reporter(call)
        work = arun(
            suite,
            rubric=rubric,
            target=target,
            judges=judges,
            limit=limit,
            store=store,
            on_progress=lambda now: report(now.done, now.planned, f"run {now.run_id}"),
        )
        ended = await report.during(work)
        return await show(ended.run_id)

    async def show(
        run: Annotated[str, Field(description="a run's id, its name, a tag, or last")],
        sample: Annotated[str | None, Field(description="the id of one of its samples")] = None,
        repeat: Annotated[int | None, Field(ge=0, description="which repeat of the sample")] = None,
    ) -> Data:
        """Show a run, or everything stored about one of its samples."""
        return await asyncio.to_thread(_shown, store, run, sample, repeat)

    yield run
    yield show


def _shown(url: str | None, run: str, sample: str | None, repeat: int | None) -> Data:
    with closing(open_run_store(url)) as store:
        row = find_run(store, run)
        if sample is not None:
            return record_as_data(find_record(store, row, sample, repeat), row, store)
        return view_as_data(view_run(row, store), store)


async def list_rubrics() -> Data:
    """List the rubrics that can be used by name."""
    return {"rubrics": [listed_as_data(*each) for each in rubric_files().every()]}


async def check_rubric(rubric: RubricArgument) -> Data:
    """Check a rubric document, and return every finding with its line, column and hint."""
    origin, reading = rubric_files().reading(rubric)
    return {"ok": reading.rubric is not None, "documents": [checked_as_data(origin, reading)]}


async def prompt(
    rubric: RubricArgument,
    task: TaskArgument,
    response: ResponseArgument,
    response_b: SecondArgument = None,
    reference: ReferenceArgument = None,
    context: ContextArgument = None,
) -> Data:
    """Return the exact prompt of a judge, for you to answer; for a pair, two prompts."""
    asked = await check_reply(**locals(), replies=[])
    return {"prompts": asked["prompts"]}


async def check_reply(
    rubric: RubricArgument,
    task: TaskArgument,
    response: ResponseArgument,
    replies: Annotated[
        list[str], Field(description="all your replies so far, in the order they were asked for")
    ],
    response_b: SecondArgument = None,
    reference: ReferenceArgument = None,
    context: ContextArgument = None,
) -> Data:
    """Check your replies to `prompt`: returns the report, or the defects and what to answer now."""
    loaded = load_rubric(rubric)
    row = evaluate_once.single_row(
        task=task, response=response, response_b=response_b, reference=reference, context=context
    )
    judged = evaluate_once.judge_by_agent(loaded, row, replies)
    if isinstance(judged, evaluate_once.AgentTurn):
        return judged.as_data()
    return evaluate_once.conclude_single(judged, loaded).as_data()
