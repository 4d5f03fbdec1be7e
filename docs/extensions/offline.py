"""The site needs no network: the build fails if a page would fetch anything from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
_LINKS = {"stylesheet", "preload", "icon", "modulepreload", "preconnect", "dns-prefetch"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag fetches; a link that is followed by hand is none."""
        told = {name: value or "" for name, value in attrs}
        address = told.get(_FETCHED.get(tag, ""), "")
        if tag == "link" and _LINKS & set(told.get("rel", "").split()):
            address = told.get("href", "")
        if address.startswith(("http:", "https:", "//")):
            self.found.append(address)


def fetched(html: str) -> list[str]:
    """The addresses elsewhere that a browser fetches to show this page."""
    page = _Page()
    page.feed(html)
    return page.found


def _check(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    for page in sorted(Path(app.outdir).rglob("*.html")):
        if found := fetched(page.read_text()):
            raise ExtensionError(f"{page.relative_to(app.outdir)} fetches {', '.join(found)}")
    for sheet in sorted(Path(app.outdir).rglob("*.css")):
        if any(f"{start}http" in sheet.read_text() for start in ("url(", "url('", 'url("', '@import "')):
            raise ExtensionError(f"{sheet.relative_to(app.outdir)} fetches something from elsewhere")


def setup(app: Sphinx) -> dict[str, bool]:
    """Check every build."""
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
