"""Results of runs of the suites, made up."""

from hypothesis import strategies as st

from lengthwise.experiments.results import metrics_frame, table

SHARES = st.sampled_from([0.0, 0.3, 0.69, 0.7, 0.9, 1.0])


def results_of(runs, shares):
    """A table in which these runs end with these accuracies, and begin with none."""
    frames = []
    for run, own in zip(runs, shares, strict=True):
        rows = [(500, end, "accuracy", 0.0) for end in run.test_lengths]
        rows += [(1000, end, "accuracy", share) for end, share in zip(run.test_lengths, own, strict=True)]
        rows += [(step, run.training.length, "training_loss", 0.1) for step in (500, 1000)]
        frames.append(metrics_frame(run, rows))
    return table(runs, frames)
