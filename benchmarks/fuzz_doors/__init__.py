"""The doors, by name: one module each, with a ``DOOR``.

A module ``fuzz_http`` beside this folder, where there is one, is a door too: that of the explorer's requests.
"""

from importlib import import_module
from importlib.util import find_spec

from fuzz_doors.door import Door

MODULES = [
    f"fuzz_doors.{name}"
    for name in ("text", "regex", "weights", "stores", "tokens", "knobs", "shapes", "flags")
]

DOORS: dict[str, Door] = {}
for _name in [*MODULES, *(["fuzz_http"] if find_spec("fuzz_http") else [])]:
    _door: Door = import_module(_name).DOOR
    DOORS[_door.name] = _door
