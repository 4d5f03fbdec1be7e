"""A short, fixed part of what ``benchmarks/fuzz.py`` tries: inputs of all kinds through every door."""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
INPUTS = 1500


def test_every_door_accepts_or_refuses(tmp_path):
    """In a process of its own, since shapes are not checked there, as they are not where users are."""
    asked = ["--inputs", str(INPUTS), "--seed", "20", "--processes", "1", "--json", "--output", str(tmp_path)]
    paths = os.pathsep.join([str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, str(REPOSITORY / "benchmarks" / "fuzz.py"), *asked],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    told = json.loads(found.stdout)
    assert told["violations"] == [], found.stderr[-3000:]
    assert told["inputs"] == INPUTS
    doors = {"text", "regex", "weights", "stores", "checkpoints", "tokens", "knobs", "shapes", "flags"}
    assert doors <= set(told["doors"])
    for name in doors:
        assert told["doors"][name]["accepted"] > 0, name
        assert told["doors"][name]["refused"] > 0, name
