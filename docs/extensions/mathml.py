"""Formulas as MathML, which browsers draw themselves: no script, no font and no network is needed.

Docutils turns LaTeX into MathML; what it cannot turn is a warning, which fails the build.
"""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from formulas import misplaced, plain, spaced
from sphinx.application import Sphinx
from sphinx.util import logging

_logger = logging.getLogger(__name__)


def mathml(formula: str, *, block: bool, place: Any = None) -> str:
    """A formula as a ``math`` element."""
    try:
        drawn = tex2mathml(plain(formula), as_block=block)
        if wrong := misplaced(drawn):
            raise MathError(
                f"its rows fall apart ({wrong}): no pair such as \\Bigl \\Bigr may span two cells"
            )
        return spaced(drawn)
    except MathError as error:
        _logger.warning("no MathML for %s: %s", formula, error, location=place, type="mathml")
        return f"<code>{formula}</code>"


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="math">{mathml(node.astext(), block=False, place=node)}</span>')
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{mathml(node.astext(), block=True, place=node)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Make ``html_math_renderer = "mathml"`` known."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
