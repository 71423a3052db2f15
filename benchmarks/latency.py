"""How much of a slow endpoint jurybox uses: 200 ms a call, 500 at once, 2,500 calls/s at best.

The raw client of jurybox makes the same calls in the same run, for two cores may allow no more than
it reaches. Rates are between the first and the last call that the endpoint saw, plus one latency.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

import material
from processes import Row, driven, endpoint, replies_of
from quick import record_body

LATENCY_MS = 200.0
AT_ONCE = 500
NAMES = ("floor:client", "jurybox")


def rate(base_url: str, row: Row) -> tuple[float, int]:
    """Return calls a second as the endpoint saw them, and the most in flight."""
    if row["notes"].startswith("failed"):
        raise SystemExit(f"{row['name']}: {row['notes']}\n{row.get('words', '')}")
    counted = material.count(base_url)
    took = counted["last_call"] - counted["first_call"] + LATENCY_MS / 1000
    return counted["calls"] / took, counted["most_in_flight"]


def main() -> None:
    """Print one row for the client alone and one for jurybox."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {name: [] for name in NAMES}
    most: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with endpoint(replies_of(NAMES), place, LATENCY_MS) as base_url:
            driven("jurybox", base_url, 1, place / "body")
            body = ("--body", str(record_body(base_url, place)))
            for turn in range(options.repeats):
                for name in NAMES:
                    work = place / f"{name}{turn}"
                    more = ("--concurrency", str(AT_ONCE), *body)
                    row = driven(name, base_url, options.samples, work, more)
                    found, most[name] = rate(base_url, row)
                    rates[name].append(found)
    ideal = AT_ONCE * 1000 / LATENCY_MS
    print(f"latency {LATENCY_MS:g} ms, {AT_ONCE} at once, {options.samples:,} calls")
    print(
        f"{'':18}{'calls/s':>9}{'of ideal':>10}{'of client':>11}{'in flight':>11}  median, spread"
    )
    client = statistics.median(rates["floor:client"])
    for name, values in rates.items():
        median = statistics.median(values)
        print(
            f"{name:18}{median:9,.0f}{median / ideal:10.0%}{median / client:11.0%}{most[name]:11}"
            f"  {min(values):,.0f} - {max(values):,.0f}"
        )


if __name__ == "__main__":
    main()
