"""The benchmarks run; what they measure is for people to read."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["startup", "rubric", "safety", "companion", "runs --sizes 10"])
def test_a_benchmark_prints_its_table(name: str) -> None:
    program, *options = name.split()
    command = [sys.executable, ROOT / "benchmarks" / f"{program}.py", "--repeats", "2", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "median" in done.stdout
