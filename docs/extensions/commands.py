"""``{commands}`` stands for all commands with all their flags."""

import importlib

from command_reference import reference
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Commands(SphinxDirective):
    """``{commands}``."""

    def run(self) -> list[nodes.Node]:
        """The sections of all commands."""
        for path in importlib.import_module("lengthwise.cli").__path__:
            self.env.note_dependency(path)
        return self.parse_text_to_nodes(reference(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
