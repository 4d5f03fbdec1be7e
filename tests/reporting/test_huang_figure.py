"""The figure of a suite, drawn from committed results: what its marks and words say."""

from pathlib import Path

import pandas as pd
import pytest

from lengthwise.experiments import huang
from lengthwise.experiments.verdicts import verdicts
from lengthwise.reporting.huang import COLORS, suite_figure

RESULTS = Path(__file__).parents[2] / "docs/reproductions/huang/algorithmic.parquet"


@pytest.fixture(scope="module")
def drawn():
    results = pd.read_parquet(RESULTS)
    cells = huang.there(huang.cells("algorithmic", "paper"), results)
    return cells, results, suite_figure("algorithmic", cells, results, verdicts(cells, results))


def panel(figure, title):
    (found,) = [axes for axes in figure.axes if axes.get_title(loc="left").strip() == title]
    return found


def test_lines_go_through_medians_and_every_seed_is_a_point(drawn):
    cells, results, figure = drawn
    for cell in cells:
        lines = panel(figure, cell.task.title).get_lines()
        own = [line for line in lines if line.get_color() == COLORS[cell.positions]]
        (*seeds, median) = [line for line in own if line.get_marker() != "x"] or [None]
        crosses = [line for line in own if line.get_marker() == "x"]
        if cell.published is None:
            assert not crosses
        else:
            assert [100 * share for share in crosses[0].get_ydata()] == pytest.approx(cell.published.accuracy)
        if not cell.runs:
            assert median is None
            continue
        rights = results[(results["metric"] == "accuracy") & results["run"].isin([r.id for r in cell.runs])]
        last = rights.sort_values("step").groupby(["run", "test_length"])["value"].last().unstack()
        assert len(seeds) == len(last) == 5
        assert sorted(tuple(line.get_ydata()) for line in seeds) == sorted(map(tuple, last.to_numpy()))
        assert tuple(median.get_ydata()) == tuple(last.median())


def test_panels_say_what_was_not_run(drawn):
    cells, _, figure = drawn
    for title in {cell.task.title for cell in cells}:
        missing = [cell.positions for cell in cells if cell.task.title == title and not cell.runs]
        (words,) = [text.get_text() for text in panel(figure, title).texts]
        told = [line for line in words.splitlines() if "not run" in line]
        assert told == ([f"not run: {', '.join(missing)}"] if missing else [])
    assert any(not cell.runs for cell in cells)
