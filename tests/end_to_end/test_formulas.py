"""Formulas of the site say what their TeX says; see docs/formulas.py."""

import pytest
from formulas import misplaced, plain, spaced


@pytest.mark.parametrize(
    ("formula", "written"),
    [
        (r"\min(\frac12, x)", r"\min(\frac{1}{2}, x)"),
        (r"\tfrac 34", r"\tfrac{3}{4}"),
        (r"|y_i-\bar y_i|", r"|y_i-{\bar y{}}_i|"),
        (r"\hat{\mu}^2", r"{\hat {\mu}{}}^2"),
        (r"\bar \mu_{i}", r"{\bar \mu{}}_{i}"),
    ],
)
def test_groups_are_written_out(formula, written):
    assert plain(formula) == written
    assert plain(written) == written


@pytest.mark.parametrize(
    "formula", [r"\frac1{2D}", r"\frac{12}{x}", r"\bar d = 1", r"c'_h + 1", r"\barwedge_i"]
)
def test_what_is_read_right_stays(formula):
    assert plain(formula) == formula


def test_bars_slashes_and_names_stand_as_in_tex():
    given = '<mo stretchy="false">|</mo><mi>z</mi><mo>/</mo><mi>ln</mi> <mo>&ApplyFunction;</mo> <mi>m</mi>'
    close = '<mo stretchy="false" lspace="0" rspace="0">|</mo><mi>z</mi><mo lspace="0" rspace="0">/</mo>'
    assert spaced(given) == close + '<mi>ln</mi> <mspace width="0.17em"></mspace> <mi>m</mi>'
    before_bracket = "<mo>&ApplyFunction;</mo> <mo>(</mo>"
    assert spaced(before_bracket) == before_bracket
    assert spaced("<mo>max</mo>") == '<mo lspace="0.17em" rspace="0.17em">max</mo>'


def test_tables_that_fall_apart_are_found():
    row = "<mtr><mtd><mi>a</mi></mtd><mtd/></mtr>"
    start = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>ln</mi><mo>&ApplyFunction;</mo>'
    assert not misplaced(f"{start}<mtable>{row}{row}</mtable></math>")
    assert misplaced(f"{start}<mtable><mtr><mtd>{row}</mtd></mtr></mtable></math>") == "mtr within mtd"
    assert misplaced(f"{start}<mtable><mtr><mtd/>{row}</mtr></mtable></math>") == "mtr within mtr"
    assert misplaced(f"{start}<mtable><mi>a</mi></mtable></math>") == "mi within mtable"
