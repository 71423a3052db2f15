"""The benchmarks run; what they measure is for people to read."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["startup", "rubric"])
def test_a_benchmark_prints_its_table(name: str) -> None:
    command = [sys.executable, ROOT / "benchmarks" / f"{name}.py", "--repeats", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "median" in done.stdout
