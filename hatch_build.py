"""Builds ``models/native.c`` with the package, once for each kind of processor that PyTorch tells apart.

Where there is no compiler of C, or it cannot compile for a kind, the package is built without: PyTorch's own
operations then do the same, more slowly.
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/lengthwise/models/native.c")

KINDS = {"default": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    KINDS |= {
        "avx2": ["-march=x86-64-v3"],
        "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    }
"""The flags for each of them."""

FLAGS = ["-O3", "-std=gnu11", "-fno-math-errno", "-fPIC", "-shared"]


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling before a wheel or an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add what came of it to the wheel."""
        if self.target_name != "wheel":
            return
        root, compiler = Path(self.root), shlex.split(os.environ.get("CC", "cc"))
        made_from = hashlib.sha256((root / SOURCE).read_bytes()).hexdigest()
        for kind, flags in KINDS.items():
            library = SOURCE.with_name(f"_native_{kind}.so")
            paths = ["-o", str(root / library), str(root / SOURCE), "-lm"]
            command = [*compiler, *FLAGS, *flags, f'-DSOURCE="{made_from}"', *paths]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                self.app.display_warning(f"no compiler of C, so decoders train more slowly on a CPU: {error}")
                return
            if done.returncode:
                self.app.display_warning(f"without kernels for {kind}: {done.stderr.strip()}")
                continue
            build_data["artifacts"].append(library.as_posix())
            system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"], build_data["pure_python"] = f"py3-none-{system}", False
