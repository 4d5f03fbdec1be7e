"""Why languages with a program may not be learned at all lengths, and what helps: five seeds each.

tried: of all models that the search for architectures trained, how many are right on the first bin and on the
    last; by the table of results beside this file.
starts: languages that need no positions and languages that need them, where the longest test word takes all
    positions, where as many again are spare, and where the positions form a ring, so that none is an end.
ended: Tomita 4 with spare positions, trained for 30,000 steps, ten times as long.
where: at which letters of words of 101 to 150 models of D_2 are wrong.
prefixes: at which lengths n models of (aa)* are wrong about a^n.
shortened: D_12 without positions, trained for 20,000 steps with gradients as they are and shortened to 1.
longer: the recipe's exceptions, trained on words of up to 100 letters instead of 50, as those published were.

    python docs/reproductions/huang/languages.py [PART ..]

All parts take an hour on two CPU cores.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

import lengthwise as lw
from lengthwise.experiments import huang
from lengthwise.experiments.published import Shape
from lengthwise.models.positions import Positions
from lengthwise.training import decoder_data

SEEDS, STEPS, LONGEST = range(5), 3000, 150

LANGUAGES = {
    "dyck-2": Shape(1, 1, 16),
    "dyck-3": Shape(1, 1, 16),
    "dyck-4": Shape(1, 1, 16),
    "tomita-4": Shape(1, 2, 16),
    "abab-star": Shape(2, 1, 16),
}
"""The first three need no positions."""

EXCEPTIONS = {
    "aaaa-star": (Shape(2, 1, 16), 0),
    "abab-star": (Shape(2, 1, 16), 0),
    "dyck-12": (Shape(1, 1, 16), 200),
}
"""With small shapes, and positions to spare for that which needs none."""


def trained(
    task: str,
    shape: Shape,
    spare: int = 0,
    *,
    steps: int = STEPS,
    positions: Positions = "learned",
    clip: float = 0.0,
):
    """Runs of five seeds for so many steps, their results, and the weights of each."""
    runs = []
    for seed in SEEDS:
        recipe = huang.Recipe(steps=steps, until="end", clip=clip, spare_positions=(spare,))
        run = huang.run_of(lw.task(task), positions, shape, "paper", seed, recipe)
        runs.append(run.but(evaluation=replace(run.evaluation, sequences=500, every=STEPS)))
    with tempfile.TemporaryDirectory() as folder:
        results = lw.train(runs, output=folder)
        weights = [lw.Store(folder).weights(run) for run in runs]
    return runs, results, weights


def told(results, end: int = LONGEST) -> str:
    """The shares of right words on a bin, seed by seed."""
    return " ".join(f"{100 * share:5.1f}" for share in lw.accuracies(results)[f"accuracy_{end}"])


@contextlib.contextmanager
def ring() -> Iterator[None]:
    """In training, words start anywhere, and go on at the first position behind the last."""
    usual = decoder_data.drawn_positions

    def drawn(scheme, lengths, chances, *, width, span):
        assert scheme == "learned"
        return ((chances * span).long() + torch.arange(width)) % span

    decoder_data.drawn_positions = drawn
    try:
        yield
    finally:
        decoder_data.drawn_positions = usual


def starts() -> None:
    """By where words start."""
    for name, shape in LANGUAGES.items():
        for words, spare, where in (
            ("no spare ones", 0, contextlib.nullcontext()),
            ("150 spare ones", LONGEST, contextlib.nullcontext()),
            ("on a ring", 1, ring()),  # of 152: periods 2 and 4 go round
        ):
            with where:
                _, results, _ = trained(name, shape, spare)
            print(f"{name:>9s}, {words:>14s}: {told(results)}", flush=True)


def ended() -> None:
    """With a rate that falls to 0 over ten times as many steps."""
    _, results, _ = trained("tomita-4", LANGUAGES["tomita-4"], LONGEST, steps=10 * STEPS)
    print(f"{10 * STEPS:,} steps: {told(results)}", flush=True)


def where() -> None:
    """Wrong answers by the third of the positions at which they stand."""
    task = lw.task("dyck-2")
    examples = task.sample(500, LONGEST - 49, LONGEST, torch.Generator().manual_seed(1))
    for spare in (0, LONGEST):
        runs, _, kept = trained("dyck-2", LANGUAGES["dyck-2"], spare)
        for run, weights in zip(runs, kept, strict=True):
            logits = lw.Decoder(run.decoder.model, task, weights)(examples.tokens)
            rows = torch.arange(len(logits)).unsqueeze(1)
            right = ((logits[rows, examples.places] > 0) == examples.target).all(-1)
            wrong = examples.places[examples.scored & ~right]
            thirds = [int(((wrong > low) & (wrong <= low + 50)).sum()) for low in (0, 50, 100)]
            print(f"{spare:3d} spare, seed {run.training.seed}: wrong by third", *thirds, flush=True)


def prefixes() -> None:
    """Right and wrong answers, prefix by prefix."""
    runs, _, kept = trained("aa-star", Shape(1, 1, 64), LONGEST, steps=3 * STEPS)
    task, n = lw.task("aa-star"), torch.arange(LONGEST + 1)
    examples = task.examples_of(torch.zeros(1, LONGEST, dtype=torch.long), torch.tensor([LONGEST]))
    for run, weights in zip(runs, kept, strict=True):
        ends = lw.Decoder(run.decoder.model, task, weights)(examples.tokens)[0, :, -1]
        margins = torch.where(n % 2 == 0, ends, -ends)
        wrong = (margins <= 0).nonzero().flatten().tolist()
        print(f"seed {run.training.seed}: {len(wrong)} of 151 wrong, the first at {wrong[:3]};", end=" ")
        print(f"half of the margins at least {float(margins.median()):.1f}", flush=True)


def shortened() -> None:
    """With and without, on all bins."""
    for words, clip in (("as they are", 0.0), ("shortened", 1.0)):
        _, results, _ = trained("dyck-12", Shape(1, 1, 16), steps=20_000, positions="none", clip=clip)
        for end in (50, 100, LONGEST):
            print(f"{words:>11s}, up to {end:3d}: {told(results, end)}", flush=True)


def longer() -> None:
    """On the first 50 lengths behind those of training, and on the next 50."""
    for name, (shape, spare) in EXCEPTIONS.items():
        recipe = replace(huang.RECIPES["formal", "paper"], spare_positions=(spare,))
        runs = [huang.run_of(lw.task(name), "learned", shape, "paper", seed, recipe) for seed in SEEDS]
        bins = replace(runs[0].evaluation, ends=(100, 150, 200), sequences=500, every=recipe.steps)
        results = lw.train([run.but(length=100, evaluation=bins) for run in runs])
        for end in bins.ends:
            print(f"{name:>9s}, up to {end}: {told(results, end)}", flush=True)


def tried() -> None:
    """By language and scheme."""
    results = pd.read_parquet(Path(__file__).parent / "languages.parquet")
    found = lw.accuracies(results).query("seed >= @huang.FIRST_SEED + @huang.FIVE")
    for (task, scheme), own in found.groupby(["task", "positions"], sort=False):
        perfect = own[own["perfect"]]
        last = int((perfect[f"accuracy_{LONGEST}"] >= huang.ENOUGH).sum())
        says = "a program" if lw.predict(lw.task(task), scheme).answer else "no program"
        print(
            f"{task:>15s}, {scheme:>7s}, {says:>10s}: {len(own):2d} tried, {len(perfect):2d} perfect,",
            end=" ",
        )
        print(f"{last:2d} of them right on the last", flush=True)


PARTS = {
    "tried": tried,
    "starts": starts,
    "ended": ended,
    "where": where,
    "prefixes": prefixes,
    "shortened": shortened,
    "longer": longer,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(part)
        PARTS[part]()
