"""What a browser would fetch from elsewhere to show a page, of which the site has nothing."""

import re
from html.parser import HTMLParser
from pathlib import Path

_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
_LINKS = {"stylesheet", "preload", "icon", "modulepreload", "preconnect", "dns-prefetch"}

_FETCHED_BY_SHEETS = re.compile(r"""(?:url\(|@import)\s*['"]?((?:https?:)?//[^'")\s]+)""")


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


def of_site(folder: Path) -> list[str]:
    """What the pages and style sheets of a site fetch from elsewhere, a line each."""
    found = [
        f"{page.relative_to(folder)} fetches {address}"
        for page in sorted(folder.rglob("*.html"))
        for address in fetched(page.read_text(encoding="utf-8"))
    ]
    return found + [
        f"{sheet.relative_to(folder)} fetches {address}"
        for sheet in sorted(folder.rglob("*.css"))
        for address in _FETCHED_BY_SHEETS.findall(sheet.read_text(encoding="utf-8"))
    ]
