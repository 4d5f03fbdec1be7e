"""The figure shows what was measured: every training length, every seed, the fit and the answer."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.image import imread
from matplotlib.text import Text

from laws import advice_of
from lengthwise.reporting.advice import advice_figure
from lengthwise.reporting.canvas import save_figure


def power_law(length, seed):
    return 0.05 * (7 / length) ** 3.5 * (1 + 0.02 * seed)


def test_left_panel_has_a_curve_and_a_band_a_training_length():
    advice = advice_of(power_law)
    left, right = advice_figure(advice).axes
    assert "tolerance" in {text.get_text() for text in right.texts}
    assert left.get_xscale() == left.get_yscale() == "log"
    assert len(left.collections) == len(advice.lengths)
    curves = [line for line in left.lines if len(line.get_xdata()) > 10]
    assert len(curves) == len(advice.lengths)
    for line, at in zip(curves, advice.lengths, strict=True):
        losses = np.median([curve.losses for curve in at.curves], axis=0)
        np.testing.assert_allclose(line.get_ydata(), losses)
    assert left.get_xlim()[1] == 10**9
    labels = {text.get_text() for text in left.texts}
    assert {"6", "7", "8", "10", "12", "14"} <= labels


def test_end_labels_do_not_overlap_and_stay_inside():
    advice = advice_of(lambda length, seed: 0.02 + 1e-5 * length, confirmed=None)
    figure = advice_figure(advice)
    figure.canvas.draw()
    left = figure.axes[0]
    boxes = [Text.get_window_extent(text) for text in left.texts if text.get_text().isdigit()]
    assert len(boxes) == len(advice.lengths)
    boxes.sort(key=lambda box: box.y0)
    for lower, upper in pairwise(boxes):
        assert lower.y1 <= upper.y0 + 1
    assert boxes[-1].y1 <= left.get_window_extent().y1 + 5


def test_right_panel_shows_every_seed_the_fit_and_the_answer():
    advice = advice_of(power_law)
    _, right = advice_figure(advice).axes
    legend = [text.get_text() for text in right.get_legend().get_texts()]
    assert any("predicted 12" in text for text in legend)
    assert any("shortest that sufficed: 12" in text for text in legend)
    assert any("N^{-3.5}" in text for text in legend)
    points = [line for line in right.lines if line.get_marker() in ("o", "s")]
    assert sum(len(line.get_xdata()) for line in points) == len(advice.lengths) * 3


@pytest.mark.parametrize("tolerance", [1e-6, 0.01])
def test_figures_without_an_answer_are_drawn_too(tmp_path, tolerance):
    advice = advice_of(power_law, tolerance=tolerance, confirmed=None)
    path = tmp_path / "figure.png"
    save_figure(advice_figure(advice), path)
    picture = imread(path)
    assert picture.shape[1] > 1500
    assert picture[..., :3].min() < 0.3
    assert [file.name for file in tmp_path.iterdir()] == ["figure.png"]


def test_a_diverged_seed_does_not_break_the_picture(tmp_path):
    def law(length, seed):
        return float("inf") if (length, seed) == (7, 1) else power_law(length, seed)

    save_figure(advice_figure(advice_of(law)), tmp_path / "figure.png")


def test_a_seed_that_diverged_is_a_cross():
    advice = advice_of(lambda length, seed: np.inf if (length, seed) == (8, 1) else power_law(length, seed))
    _, right = advice_figure(advice).axes
    (crosses,) = [line for line in right.lines if line.get_label() == "diverged"]
    assert list(crosses.get_xdata()) == [8]
    assert list(crosses.get_ydata()) == [right.get_ylim()[1]]
