"""What learned positions do to D_2, which needs none, and to (aa)*, which does: decoders of five seeds.

alike: models of D_2 as they are, and with every position's vector replaced by the mean of all. What they
    compute from the letters alone stays.
regularised: D_2 with the paper's regulariser of position vectors.
ended: D_2 trained for 30,000 steps, ten times as long.
longer: D_2 with longer words for training, measured at up to two and three times their length.
prefixes: at which lengths n models of (aa)* are wrong about a^n.

    python docs/reproductions/huang/positions.py [PART ..]

All parts take a quarter of an hour on two CPU cores.
"""

import sys
import tempfile
from dataclasses import replace

import torch

import lengthwise as lw
from lengthwise.experiments import huang
from lengthwise.experiments.published import Shape
from lengthwise.models.positions import Positions

SEEDS, STEPS = range(5), 3000


def trained(
    task: str,
    scheme: Positions,
    shape: Shape,
    length: int = 50,
    regulariser: float = 0.0,
    steps: int = STEPS,
):
    """Runs of five seeds for so many steps, their results, and the weights of each."""
    runs = []
    for seed in SEEDS:
        run = huang.run_of(lw.task(task), scheme, shape, "paper", seed)
        language, model, training, evaluation = run.decoder
        training = replace(training, length=length, steps=steps, regulariser=regulariser)
        ends = length, 2 * length, 3 * length
        evaluation = replace(evaluation, ends=ends, sequences=500, every=steps // 2, stop=False)
        runs.append(lw.Run(language, model, training, evaluation))
    with tempfile.TemporaryDirectory() as folder:
        results = lw.train(runs, output=folder)
        weights = [lw.Store(folder).weights(run) for run in runs]
    return runs, results, weights


def told(results) -> str:
    """The shares of right words on the last bin, seed by seed."""
    table = lw.accuracies(results)
    last = table[[name for name in table.columns if name.startswith("accuracy_")]].iloc[:, -1]
    return " ".join(f"{100 * share:5.1f}" for share in last)


def shares(model: lw.DecoderModel, weights: dict) -> str:
    """How many words of D_2 are right, by bin."""
    task, bins = lw.task("dyck-2"), [(2, 50), (52, 100), (102, 150)]
    curve = lw.evaluate(lw.Decoder(model, task, weights), task, lengths=bins, sequences=500)
    return " ".join(f"{100 * share:5.1f}" for share in curve.accuracies)


def alike() -> None:
    """With every position's vector replaced."""
    schemes: list[Positions] = ["learned", "none"]
    for scheme in schemes:
        runs, _, kept = trained("dyck-2", scheme, Shape(1, 1, 16))
        for run, weights in zip(runs, kept, strict=True):
            model = run.decoder.model
            line = f"{scheme:>7s} positions, seed {run.training.seed}: {shares(model, weights)}"
            if scheme == "learned":
                table = weights["positions"]
                mean = weights | {"positions": table.mean(0).expand_as(table).contiguous()}
                line += f"   all positions alike: {shares(model, mean)}"
            print(line, flush=True)


def regularised() -> None:
    """With the regulariser."""
    for factor in (0.0, 1e-4, 1e-3, 1e-2):
        _, results, _ = trained("dyck-2", "learned", Shape(1, 1, 16), regulariser=factor)
        print(f"regulariser {factor:g}: {told(results)}", flush=True)


def ended() -> None:
    """With a rate that falls to 0 over ten times as many steps."""
    _, results, _ = trained("dyck-2", "learned", Shape(1, 1, 16), steps=10 * STEPS)
    print(f"{10 * STEPS:,} steps: {told(results)}", flush=True)


def longer() -> None:
    """At more training lengths."""
    for length in (25, 50, 100, 200):
        _, results, _ = trained("dyck-2", "learned", Shape(1, 1, 16), length)
        print(f"up to {length} letters, measured at up to {3 * length}: {told(results)}", flush=True)


def prefixes() -> None:
    """Right and wrong answers, prefix by prefix."""
    runs, _, kept = trained("aa-star", "learned", Shape(1, 2, 16))
    task, n = lw.task("aa-star"), torch.arange(151)
    examples = task.examples_of(torch.zeros(1, 150, dtype=torch.long), torch.tensor([150]))
    for run, weights in zip(runs, kept, strict=True):
        ends = lw.Decoder(run.decoder.model, task, weights)(examples.tokens)[0, :, -1]
        margins = torch.where(n % 2 == 0, ends, -ends)
        wrong = (margins <= 0).nonzero().flatten().tolist()
        print(f"seed {run.training.seed}: {len(wrong)} of 151 wrong, the first at {wrong[:3]};", end=" ")
        print(f"half of the margins at least {float(margins.median()):.1f}", flush=True)


PARTS = {"alike": alike, "regularised": regularised, "ended": ended, "longer": longer, "prefixes": prefixes}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(part)
        PARTS[part]()
