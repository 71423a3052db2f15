"""Ctrl-C stays ours, and so do the threads' manners."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from jurybox.models.local.signals import signals_left_alone
from jurybox.models.local.threads import cores, import_runtime

STEAL = """
import ctypes, os, signal, threading
from jurybox.models.local.signals import signals_left_alone

def load():
    with signals_left_alone():
        ctypes.CDLL(None).signal(signal.SIGINT, ctypes.c_void_p(1))  # SIG_IGN

thread = threading.Thread(target=load)
thread.start()
thread.join()
try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.sigtimedwait([], 5)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_what_a_library_does_to_ctrl_c_is_undone_from_any_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEAL], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_a_handler_of_ones_own_stays() -> None:
    heard = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        with signals_left_alone():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard.wait(5)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_threads_wait_asleep_unless_the_user_chose_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    import_runtime("json")
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    import_runtime("json")
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"


def test_there_is_at_least_one_core() -> None:
    assert cores() >= 1
