"""``python -m lengthwise`` is ``lengthwise``."""

from lengthwise.cli import entry

entry()
