r"""Formulas of pages: TeX as Docutils reads it right, and its MathML as browsers draw it well.

As it is, ``\frac12`` comes out as 12 over what follows, and the index of ``\bar y_i`` under the letter; bars
and slashes stand apart from what they belong to, and the two parts of ``\ln m`` do not.
"""

import re
from xml.etree import ElementTree

_ARGUMENT = r"(\{[^{}]*\}|\\[A-Za-z]+|[A-Za-z0-9])"
_FRACTION = re.compile(r"(\\[dt]?frac)\s*(\d)(\d)")
_ACCENT = re.compile(rf"(\\(?:bar|hat|tilde|vec|dot)(?![A-Za-z]))\s*{_ARGUMENT}(?=\s*[_^])")


def plain(formula: str) -> str:
    """The formula with its groups written out."""
    formula = _FRACTION.sub(r"\1{\2}{\3}", formula)
    return _ACCENT.sub(r"{\1 \2{}}", formula)  # a group of one is none to Docutils


_HOLDS = {"mtable": "mtr", "mtr": "mtd"}
_WITHIN = {inside: outside for outside, inside in _HOLDS.items()}
_NAMES = "max|min|sup|inf|lim|arg max|arg min"


def spaced(mathml: str) -> str:
    """MathML with the spaces that TeX sets."""
    mathml = re.sub(r"<mo([^>]*)>([|/])</mo>", r'<mo\1 lspace="0" rspace="0">\2</mo>', mathml)
    mathml = re.sub(rf"<mo([^>]*)>({_NAMES})</mo>", r'<mo\1 lspace="0.17em" rspace="0.17em">\2</mo>', mathml)
    return re.sub(r"<mo>&ApplyFunction;</mo>(?=\s*<(?!mo))", '<mspace width="0.17em"></mspace>', mathml)


def misplaced(mathml: str) -> str:
    """Which part of a table stands where none may; empty if all is well."""
    for parent in ElementTree.fromstring(mathml.replace("&ApplyFunction;", "")).iter():
        for child in parent:
            inside, outside = child.tag.split("}")[-1], parent.tag.split("}")[-1]
            if _HOLDS.get(outside, inside) != inside or _WITHIN.get(inside, outside) != outside:
                return f"{inside} within {outside}"
    return ""
