"""How large is the page of a big store, and how long does it take? A store of rows made up by a law, as many
runs as the first argument says, at 20 test lengths each: reading, building, writing, the size of the page.
"""

import sys
import tempfile
import time
from pathlib import Path

import lengthwise as lw
from lengthwise.experiments.folder import read_folder
from lengthwise.experiments.results import Result, metrics_frame
from lengthwise.reporting.report import build, html_page

LENGTHS = tuple(round(10 ** (1 + step / 4)) for step in range(19))


def main(count: int, folder: Path) -> None:
    baseline = lw.Run(lw.SimpleTask(), lw.LimitModel(), lw.Training(length=4), lw.Evaluation(lengths=LENGTHS))
    each = max(1, count // 50)
    runs = lw.vary(baseline, omega=(2, 4, 8, 12, 16), length=range(4, 24, 2), seed=range(each))
    results = []
    for run in runs:
        length, seed = run.training.length, run.training.seed
        assert isinstance(run.task, lw.SimpleTask)
        end = 0.4 * min(1.0, (run.task.omega / length) ** 3) * (1 + 0.5 * seed / each)
        last = run.training.steps
        rows = [(last, length, "training_loss", 0.1 * end)]
        for test in run.test_lengths:
            loss = end * (1 - 0.9 * length / test)
            rows += [(last, test, "loss", loss), (last, test, "loss_error", loss / 50)]
            rows.append((last, test, "baseline", 0.5))
        results.append(Result(run, metrics_frame(run, rows), {}))
    print(f"{len(runs)} runs, {sum(len(result.metrics) for result in results):,} rows", flush=True)
    lw.Store(folder).add(results)
    begun = time.perf_counter()
    read = read_folder(folder)
    print(f"read in {time.perf_counter() - begun:.1f} s", flush=True)
    begun = time.perf_counter()
    report = build(read, theory=0)
    print(f"built in {time.perf_counter() - begun:.1f} s", flush=True)
    begun = time.perf_counter()
    page = html_page(report)
    print(f"page of {len(page) / 1e6:.1f} MB in {time.perf_counter() - begun:.1f} s")
    (folder / "report.html").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(int(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, Path(made))
