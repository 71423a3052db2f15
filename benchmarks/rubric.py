"""Measures reading and rendering the bundled rubric documents.

The floor is what the two libraries below take for the same text: Markdown into tokens with all its
inline rules, YAML into values. Ratios are of medians from one interleaved run.
"""

import argparse
import re
import statistics
import time
from collections.abc import Callable

import yaml
from markdown_it import MarkdownIt

from jurybox import render_rubric
from jurybox.wiring import rubric_files

YAML_BLOCK = re.compile(r"^(?:---|```yaml.*)\n(.*?)^(?:---|```)$", re.DOTALL | re.MULTILINE)


def floor(text: str) -> None:
    """Do what any reader of such a document has to do."""
    MarkdownIt("commonmark").enable("table").parse(text)
    for block in YAML_BLOCK.findall(text):
        yaml.load(block, Loader=yaml.CSafeLoader)


def milliseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def main() -> None:
    """Print one row a document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    print(f"rubric documents, CPU ms, median of {repeats} (spread: 10% to 90%)")
    print(f"{'document':16}{'KB':>6}{'floor':>9}{'read':>9}{'spread':>15}{'ratio':>7}{'render':>9}")
    files = rubric_files()
    for file in map(files.read, files.bundled()):
        text = file.data.decode()
        rubric = files.parse(file)
        floors: list[float] = []
        reads: list[float] = []
        renders: list[float] = []
        for _ in range(repeats):
            floors.append(milliseconds(lambda text=text: floor(text)))
            reads.append(milliseconds(lambda file=file: files.check(file)))
            renders.append(milliseconds(lambda rubric=rubric: render_rubric(rubric)))
        cuts = statistics.quantiles(reads, n=10)
        spread = f"{cuts[0]:.2f} to {cuts[-1]:.2f}"
        bottom, read = statistics.median(floors), statistics.median(reads)
        print(
            f"{file.name:16}{len(file.data) / 1000:6.1f}{bottom:9.2f}{read:9.2f}{spread:>15}"
            f"{read / bottom:7.2f}{statistics.median(renders):9.2f}"
        )


if __name__ == "__main__":
    main()
