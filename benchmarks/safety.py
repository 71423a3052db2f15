"""Measures the safety scan: what each response and each reply of a judge pays."""

import argparse
import statistics
import time

from jurybox.judging.safety import scan

PROSE = (
    "The response addresses the question clearly and gives a complete answer. It explains how the"
    " method works, lists three examples, and says where they can be found. The tone is friendly;"
    " short paragraphs help the reader to follow every step of it. "
)
TEXTS = {
    "harmless": PROSE,
    "harmless, long": PROSE * 8,
    "harmless, 1 MB": PROSE * 4000,
    "beyond ASCII": PROSE.replace(". ", "… — “right”; "),
    "denied": f"{PROSE} It never encourages self-harm.",
    "danger": f"{PROSE} It encourages self-harm.",
}
SHARE = 20_000  # characters that a sample scans, so that its time can be told from the clock's own


def microseconds(text: str) -> float:
    """Return the CPU time of one scan."""
    times = max(1, SHARE // len(text))
    start = time.process_time()
    for _ in range(times):
        scan(text)
    return (time.process_time() - start) * 1e6 / times


def main() -> None:
    """Print one row a text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    print(f"safety scan, CPU µs, of {repeats}")
    print(f"{'text':16}{'characters':>12}{'least':>12}{'median':>12}")
    for name, text in TEXTS.items():
        scan(text)  # the first one compiles what it needs
        taken = [microseconds(text) for _ in range(repeats)]
        print(f"{name:16}{len(text):12,}{min(taken):12,.1f}{statistics.median(taken):12,.1f}")


if __name__ == "__main__":
    main()
