"""The doors, by name: one module each, with a ``DOOR``. The explorer's, which needs connections, is
``fuzz_http.py``.
"""

from importlib import import_module

from fuzz_doors.door import Door

NAMES = ("text", "regex", "weights", "stores", "checkpoints", "tokens", "knobs", "shapes", "flags")

DOORS: dict[str, Door] = {name: import_module(f"fuzz_doors.{name}").DOOR for name in NAMES}
