"""Workers and nodes of a Ray cluster are killed at random while a sweep trains; its rows must be those of the
local engine, and none twice, or this stops with an error.

    python benchmarks/faults_ray.py --rounds 5 --seed 0
"""

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from ray.cluster_utils import Cluster

import lengthwise as lw
from lengthwise.experiments import engine
from lengthwise.experiments.checkpoints import CheckpointFolder, decode

EVALUATION = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
LIMIT = lw.Run(
    lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), lw.Training(length=4, steps=4000, batch=8), EVALUATION
)
DECODER = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=8, heads=2, layers=1, positions="randomised"),
    lw.DecoderTraining(length=6, steps=1500, batch=4),
    lw.DecoderEvaluation(ends=(6, 12), sequences=8, every=250),
)
STORE: Any = {"object_store_memory": 80 * 2**20}


def workers_of(node: Any) -> list[int]:
    """The processes of a node that train."""
    raylet, found = node.all_processes["raylet"][0].process.pid, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_text().partition("\0")[0]
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        if parent == raylet and name == "ray::work":
            found.append(int(folder.name))
    return found


class Faults:
    """Kills a worker or a node every few seconds, four times at most."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster, self._chance = cluster, chance
        self._due = time.monotonic() + chance.uniform(3, 10)
        self.done, self.kinds = 0, []

    def progress(self, more: int) -> None:
        """Called with the number of model-steps done."""
        self.done += more
        busy = [node for node in self._cluster.worker_nodes if workers_of(node)]
        if time.monotonic() < self._due or not busy or len(self.kinds) == 4:
            return
        self._due = time.monotonic() + self._chance.uniform(3, 10)
        node, kind = self._chance.choice(busy), self._chance.choice(["worker", "node"])
        self.kinds.append(kind)
        if kind == "worker":
            os.kill(self._chance.choice(workers_of(node)), signal.SIGKILL)
        else:
            self._cluster.remove_node(node, allow_graceful=False)
            self._cluster.add_node(num_cpus=1, **STORE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    chance, folder = random.Random(asked.seed), tempfile.mkdtemp(prefix="lw-")
    os.mkdir(f"{folder}/ray")
    os.environ |= {
        "RAY_TMPDIR": folder,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "3",
    }
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **STORE}
    )
    for _ in range(2):
        cluster.add_node(num_cpus=1, **STORE)
    runs = [run for steps in range(4) for run in lw.vary(LIMIT.but(steps=4000 + steps), seed=range(2))]
    runs += lw.vary(DECODER, seed=range(3))
    local = lw.train(runs)
    ensembles = len(engine.plan(runs, torch.device("cpu")))
    print(f"{len(runs)} runs in {ensembles} ensembles; faults every 3 to 10 s", flush=True)
    given: list[int] = []
    read = CheckpointFolder.read

    def reading(kept: CheckpointFolder, group: Any) -> bytes | None:
        data = read(kept, group)
        if data is not None:
            given.append(decode(data, group, torch.device("cpu")).about["step"])
        return data

    setattr(CheckpointFolder, "read", reading)  # noqa: B010 (pyright minds an assignment)
    for number in range(asked.rounds):
        given.clear()
        faults = Faults(cluster, chance)
        output = Path(folder) / f"store-{number}"
        began = time.monotonic()
        found = lw.train(
            runs,
            output=output,
            engine="ray",
            address=cluster.address,
            progress=faults.progress,
            checkpoint_every=0.5,
        )
        twice = int(found.duplicated(["run", "step", "test_length", "metric"]).sum())
        whole = faults.done == sum(run.training.steps for run in runs)
        print(
            f"round {number}: lost {faults.kinds}, gone on from steps {given}, "
            f"{time.monotonic() - began:.0f} s; "
            f"same rows: {found.equals(local)}, rows twice: {twice}, progress adds up: {whole}, "
            f"checkpoints left: {len(list(output.glob('.checkpoints/*')))}",
            flush=True,
        )
        assert found.equals(local)
        assert whole
        assert not list(output.glob(".checkpoints/*"))
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
