"""Serve a page on this computer alone, on which parameters are moved by hand: the bound, the simulation of an
input, and the attention of the model follow. Ctrl-C ends it.
"""

import os
import signal
import sys
import threading
import webbrowser
from dataclasses import dataclass
from types import FrameType

from lengthwise.cli.explore.server import ADDRESS, serving


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise explore``."""

    port: int = 8642
    """The port of the page; 0: any that is free."""
    no_browser: bool = False
    """Print the page's address without opening it."""


def run(command: Command) -> None:
    """Serve until interrupted or told to end."""
    import torch

    torch.set_num_threads(1)  # what is computed here is small: more threads would wait for each other
    with serving(command.port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        print(f"lengthwise explore: {address} (Ctrl-C ends it)", flush=True)
        if not command.no_browser and _has_screen():
            threading.Thread(target=_open, args=(address,), daemon=True).start()
        signal.signal(signal.SIGTERM, _interrupt)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def _has_screen() -> bool:
    """Whether a browser would have a window to open: one in the terminal would take it from us."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open(address: str) -> None:
    try:
        webbrowser.open(address)
    except (webbrowser.Error, OSError):
        print("lengthwise: no browser could be opened: open the address above in one", file=sys.stderr)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
