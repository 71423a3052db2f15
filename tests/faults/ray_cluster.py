"""A Ray cluster of two nodes on this machine, started by another process."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_PROGRAM = """
import json, os, sys
from ray.cluster_utils import Cluster

def node(cpus):
    # Our drivers want no logs of workers.
    return {"num_cpus": cpus, "object_store_memory": 80_000_000, "include_log_monitor": False}

cluster = Cluster(initialize_head=True, head_node_args={**node(1), "include_dashboard": False})
nodes = [cluster.add_node(wait=False, **node(1))]
cluster.wait_for_nodes()
print(cluster.address, flush=True)
for line in sys.stdin:
    if line == "kill\\n":
        cluster.remove_node(nodes.pop(0), allow_graceful=False)
    elif line == "add\\n":
        nodes.append(cluster.add_node(**node(1)))
    print("done", flush=True)
cluster.shutdown()
"""


class RayNodes:
    """The cluster's address, and the power over its nodes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address = self._line()

    def kill_node(self) -> None:
        self._do("kill")

    def add_node(self) -> None:
        self._do("add")

    def _do(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the cluster didn't start"
        return line


@contextmanager
def ray_nodes(environment: dict[str, str]) -> Iterator[RayNodes]:
    quiet = {
        **environment,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_prestart_worker_first_driver": "0",
    }
    with (
        # Sockets are in it, whose paths must be short.
        tempfile.TemporaryDirectory(prefix="jb-ray-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**quiet, "RAY_TMPDIR": folder},
        ) as process,
    ):
        try:
            yield RayNodes(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)
