"""Pages in headless Chromium: what they log, what they ask of the network, at which width and in which theme.

::

    @pytest.fixture(scope="module")
    def browser():
        with chromium() as opened:
            yield opened

    @needs_chromium
    def test_page(browser, path):
        browser.open(path.as_uri(), width=390, theme="dark")
        assert browser.errors() == []
"""

import importlib.util
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

_lacking = [
    name
    for name, found in {
        "chromium": CHROMIUM,
        "chromedriver": DRIVER,
        "selenium": importlib.util.find_spec("selenium"),
    }.items()
    if not found
]

needs_chromium = pytest.mark.skipif(bool(_lacking), reason=f"not installed: {', '.join(_lacking)}")
"""Marks the tests that open a page."""

OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"

CONTRASTS = """
const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
  .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const colour = numbers(getComputedStyle(one).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const texts = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const one = walk.currentNode.parentElement;
  if (!walk.currentNode.textContent.trim() || !one.checkVisibility({ visibilityProperty: true })) continue;
  const style = getComputedStyle(one);
  const [front, back] = [light(numbers(one.closest("svg") ? style.fill : style.color)), light(behind(one))];
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  texts.push([ratio, one.tagName, walk.currentNode.textContent.trim().slice(0, 30)]);
}
return texts;
"""
"""Of every text that is seen: its contrast to what is behind it, its element and its beginning."""

INSIDE = ("file:", "data:", "blob:", "about:", "chrome:", "chrome-extension:", "devtools:")
"""What a page may ask for without a network."""


@dataclass
class Browser:
    """A browser with one page."""

    driver: Any
    """The selenium driver, for all that is not below."""
    _events: list[dict[str, Any]] = field(default_factory=list)

    def open(
        self, address: str, *, width: int = 1280, height: int = 900, theme: Literal["light", "dark"] = "light"
    ) -> None:
        """Open a page in a window of this size, for a user who prefers this theme; forget what was logged."""
        self.resize(width, height)
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        self.driver.get("about:blank")
        self.errors()
        self._logged()
        self._events.clear()
        self.driver.get(address)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page this size, in its own pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script: str, *arguments: Any) -> Any:
        """What a piece of JavaScript returns."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        """The first element that a CSS selector chooses."""
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        """All elements that a CSS selector chooses."""
        return self.driver.find_elements("css selector", selector)

    def until(self, script: str, seconds: float = 10.0) -> None:
        """Wait until a piece of JavaScript returns something true."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, seconds).until(lambda driver: driver.execute_script(script))

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return self.run(OVERFLOW)

    def contrasts(self) -> list[tuple[float, str, str]]:
        """The contrast of every text that is seen to what is behind it, as WCAG defines it."""
        return self.run(CONTRASTS)

    def tap(self, x: float, y: float) -> None:
        """Touch the page for a moment."""
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def errors(self) -> list[str]:
        """What the page has logged as errors or warnings since it was last asked."""
        logged = self.driver.get_log("browser")
        return [entry["message"] for entry in logged if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """The addresses that the page has asked for since it was opened, itself included."""
        self._events += self._logged()
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def network(self) -> list[str]:
        """Those of them that need a network."""
        return [address for address in self.requests() if not address.startswith(INSIDE)]

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG."""
        import base64

        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
        path.write_bytes(base64.b64decode(shot["data"]))

    def _logged(self) -> list[dict[str, Any]]:
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]


@contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """Headless Chromium with a profile of its own, closed in the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
