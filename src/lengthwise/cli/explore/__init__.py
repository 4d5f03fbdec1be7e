"""Serve a page on this computer alone, on which parameters are moved by hand: the bound, the simulation of an
input, and the attention of the model follow. Ctrl-C ends it.
"""

import threading
import webbrowser
from dataclasses import dataclass

from lengthwise.cli.explore.server import ADDRESS, serving


@dataclass(frozen=True, kw_only=True)
class Command:
    """The flags of ``lengthwise explore``."""

    port: int = 8642
    """The port of the page; 0: any that is free."""
    no_browser: bool = False
    """Print the page's address without opening it."""


def run(command: Command) -> None:
    """Serve until interrupted."""
    with serving(command.port) as server:
        address = f"http://{ADDRESS}:{server.server_port}/"
        print(f"lengthwise explore: {address} (Ctrl-C ends it)", flush=True)
        if not command.no_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
