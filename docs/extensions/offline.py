"""The site needs no network: the build fails if a page would fetch anything from elsewhere."""

from pathlib import Path

import fetches
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def _check(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    if found := fetches.of_site(Path(app.outdir)):
        raise ExtensionError("; ".join(found))


def setup(app: Sphinx) -> dict[str, bool]:
    """Check every build."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
