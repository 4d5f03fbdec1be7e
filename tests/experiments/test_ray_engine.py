"""The engine of Ray: the same numbers as on one machine, whatever is killed."""

import os
import shutil
import tempfile
from pathlib import Path

import pandas as pd
import pytest
import torch

import lengthwise as lw
from lengthwise.experiments import checkpoints, engine, ray_engine
from lengthwise.experiments.engine import train_all
from lengthwise.experiments.limits import bytes_of
from lengthwise.tasks import PREDICTION_TASKS

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

EVALUATION = lw.Evaluation(lengths=(10, 30, 100, 300, 1000), sequences=64)
LIMIT = lw.Run(
    lw.SimpleTask(), lw.LimitModel(width=4, hidden=8), lw.Training(length=4, steps=20, batch=8), EVALUATION
)
DECODER = lw.Run(
    lw.task("binary-majority"),
    lw.DecoderModel(width=8, heads=2, layers=1),
    lw.DecoderTraining(length=6, steps=10, batch=4),
    lw.DecoderEvaluation(ends=(6, 12), sequences=8),
)


def limit_runs(seeds=4, **changes):
    return lw.vary(LIMIT.but(**changes), length=[3, 4], seed=range(seeds))


def two_layers():
    model = lw.LimitModel(width=4, hidden=0, heads=2, layers=2, locality=1)
    return lw.vary(LIMIT.but(task=lw.KGramTask(k=1, vocabulary=2), model=model, length=6), seed=[0, 1])


def same(found, expected):
    """The same runs, rows and weights, bit for bit."""
    assert [own.run for own in found] == [own.run for own in expected]
    for one, other in zip(found, expected, strict=True):
        pd.testing.assert_frame_equal(one.metrics, other.metrics, check_exact=True)
        assert set(one.weights) == set(other.weights)
        for name, value in other.weights.items():
            assert torch.equal(one.weights[name], value)


@pytest.fixture
def small_ensembles(monkeypatch):
    """Two runs an ensemble."""
    monkeypatch.setattr(engine, "CPU_MEMORY", 2 * bytes_of(LIMIT))


@pytest.fixture(scope="module")
def nodes():
    """A cluster of a head without cores and two nodes with one each."""
    folder = tempfile.mkdtemp(prefix="lw-")  # short: the names of sockets may have 107 letters
    os.mkdir(f"{folder}/ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_health_check_period_ms", "500")
        patch.setenv("RAY_health_check_failure_threshold", "3")
        store = {"object_store_memory": 80 * 2**20}
        head = {"num_cpus": 0, "include_dashboard": False, **store}
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            cluster.add_node(num_cpus=1, **store)
        cluster.wait_for_nodes()
        yield cluster
        ray.shutdown()
        cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def test_two_nodes_find_what_one_machine_finds(nodes, tmp_path, small_ensembles, request):
    """Both families, two layers, and a language that only this process knows."""
    request.addfinalizer(lambda: PREDICTION_TASKS.pop("only-here"))
    language = DECODER.but(task=lw.language("only-here", "(ab)*c", "abc"))
    runs = [*limit_runs(), *two_layers(), *lw.vary(DECODER, seed=range(3)), *lw.vary(language, seed=[0, 1])]
    done = []
    local = train_all(runs)
    found = train_all(
        runs, engine="ray", address=nodes.address, output=tmp_path / "ray", progress=done.append
    )
    same(found, local)
    assert sum(done) == sum(run.training.steps for run in runs)
    assert not ray.is_initialized()


def workers_of(node):
    """The processes of a node that train."""
    (raylet,) = [own.process.pid for own in node.all_processes["raylet"]]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_text().partition("\0")[0]
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        if parent == raylet and name == "ray::work":
            found.append(int(folder.name))
    return found


STEPS = 10_000
"""So many that both ensembles are being trained when both have left a checkpoint, on a fast machine too."""


class Fault:
    """Does something once, when both ensembles have left a checkpoint; counts what is told and read."""

    def __init__(self, monkeypatch, folder, fault):
        self.folder, self.fault, self.told, self.given = folder, fault, 0, []
        read = checkpoints.CheckpointFolder.read

        def reading(kept, runs):
            data = read(kept, runs)
            if data is not None:
                self.given.append(checkpoints.decode(data, runs, torch.device("cpu")).about["step"])
            return data

        monkeypatch.setattr(checkpoints.CheckpointFolder, "read", reading)

    def progress(self, done):
        self.told += done
        if self.fault and len(list(self.folder.glob(".checkpoints/*.safetensors"))) == 2:
            fault, self.fault = self.fault, None
            fault()


def test_what_a_lost_node_trained_goes_on_from_its_checkpoint(nodes, tmp_path, monkeypatch, small_ensembles):
    """benchmarks/faults_ray.py has many faults, of workers too."""

    def fault():
        nodes.remove_node(next(node for node in nodes.worker_nodes if workers_of(node)), allow_graceful=False)

    runs = lw.vary(LIMIT.but(steps=STEPS), seed=range(4))
    local = train_all(runs)
    seen = Fault(monkeypatch, tmp_path, fault)
    found = train_all(
        runs,
        engine="ray",
        address=nodes.address,
        output=tmp_path,
        progress=seen.progress,
        checkpoint_every=0.2,
    )
    assert seen.fault is None
    assert len(seen.given) == 1
    assert 0 < seen.given[0] < STEPS
    same(found, local)
    assert seen.told == sum(run.training.steps for run in runs)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [".claims", ".lock", *(run.id for run in runs)]
    )


def test_mistakes_and_other_versions_are_told_as_on_one_machine(nodes, monkeypatch):
    """The engine raises what a worker raised; there, a node has another version."""
    bad = two_layers()[0].but(training=lw.Training(length=6, shortest=3, steps=5, batch=8))
    with pytest.raises(ValueError, match=r"^models of two layers are trained on strings of one length"):
        train_all([bad], engine="ray", address=nodes.address)
    other = {"lengthwise": "0.0.1", "torch": "2.0"}
    monkeypatch.setattr(ray_engine, "versions_here", lambda: other)
    with pytest.raises(ValueError, match=r"a node .* has lengthwise .*, this process lengthwise 0\.0\.1 and"):
        train_all([LIMIT], engine="ray", address=nodes.address)


def test_addresses_that_are_none_are_told_at_once():
    for address, why in (("127.0.0.1:1", "no Ray cluster answers"), ("nonsense", "the address of a Ray")):
        with pytest.raises(ValueError, match=why):
            train_all([LIMIT], engine="ray", address=address)
    with pytest.raises(ValueError, match="the local engine has no address"):
        train_all([LIMIT], address="auto")
