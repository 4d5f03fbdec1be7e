"""The explorer's page in a browser: by keyboard, on a phone, in both themes."""

import json
import subprocess
import sys
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from browser import chromium, needs_chromium

pytestmark = needs_chromium

SETTLED = """
return document.querySelectorAll(".waiting").length === 0
  && [...document.querySelectorAll(".status")].every((one) => one.textContent)
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address():
    """The command itself in a process of its own, as a user has it."""
    command = [sys.executable, "-m", "lengthwise", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield running.stdout.readline().split()[2]
        running.terminate()


def answer(address, panel, asked):
    """What the server says to the setting itself; other tests compare that with the library."""
    sent = Request(f"{address}api/{panel}", json.dumps(asked).encode(), {"Content-Type": "application/json"})
    with urlopen(sent, timeout=30) as reply:
        return json.load(reply)


def status(browser, panel):
    browser.until(SETTLED)
    return browser.find(f"#{panel} .status").text


def type_input(browser, text):
    from selenium.webdriver.common.keys import Keys

    field = browser.find("#input")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text)
    browser.until(SETTLED)


def test_sliders_and_constructions_by_keyboard(browser, address):
    from selenium.webdriver.common.keys import Keys

    browser.open(address)
    before = status(browser, "bound")
    assert before == answer(address, "bound", {"construction": "modp"})["sentence"]
    browser.find("#parameter-period").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    browser.until("return location.hash.includes('period=5')")
    assert (
        status(browser, "bound")
        == answer(address, "bound", {"construction": "modp", "period": 5})["sentence"]
    )
    assert browser.find("#parameter-period").get_attribute("aria-valuetext") == "5"
    assert browser.run("return document.querySelector('#parameter-residue').max") == "4"
    browser.find("input[value=modp]").send_keys(Keys.ARROW_DOWN)
    assert browser.run("return document.activeElement.value") == "kgram"
    assert status(browser, "bound") == answer(address, "bound", {"construction": "kgram"})["sentence"]
    assert browser.errors() == []


def test_an_input_is_simulated_and_attended_to(browser, address):
    browser.open(address)
    status(browser, "simulation")
    text = "(01)^150 1"
    type_input(browser, text)
    asked = {"construction": "modp", "input": text}
    assert status(browser, "simulation") == answer(address, "simulation", asked)["sentence"]
    assert status(browser, "attention") == answer(address, "attention", asked)["sentence"]
    assert not browser.find_all("#attention svg.map")
    type_input(browser, "0110")
    assert len(browser.find_all("#attention svg.map")) == 1
    assert sum("position" in text.text for text in browser.find_all("#attention svg.map text")) == 0
    browser.find("#attention summary").click()
    rows = browser.find_all("#attention details:first-of-type tbody tr")
    weights = answer(address, "attention", {**asked, "input": "0110"})["heads"][0]["weights"]
    told = [[float(cell) for cell in row.text.split()] for row in rows]
    assert [row[:2] for row in told] == [[1, 0], [2, 1], [3, 1], [4, 0]]
    assert [row[2] for row in told] == pytest.approx(weights, rel=1e-3)
    assert browser.errors() == []


def test_figures_of_many_small_parts_say_what_they_are_of(browser, address):
    browser.open(f"{address}#construction=modp&period=12&input=(01)^18")
    status(browser, "attention")
    ends = [text.text for text in browser.find_all("#attention svg.map text")]
    assert ends == ["position 1", "position 36"]
    # Three of 36 tokens are the most of a type: 8.3%, and 4.2% is half way there.
    told = [text.text for text in browser.find_all("#simulation svg text") if "%" in text.text]
    assert told == ["0%", "4.2%", "8.3%"]


def test_a_mistake_is_told_and_mended(browser, address):
    browser.open(address)
    status(browser, "simulation")
    bound = status(browser, "bound")
    type_input(browser, "<b>7")
    assert "input is not understood" in status(browser, "simulation")
    assert "is not in the alphabet 0 1" in browser.find("#input-error").text
    assert browser.find("#input").get_attribute("aria-invalid") == "true"
    assert "input-error" in browser.find("#input").get_attribute("aria-describedby")
    assert status(browser, "bound") == bound
    type_input(browser, "01")
    assert "not understood" not in status(browser, "simulation")
    assert not browser.find("#input-error").is_displayed()
    assert browser.find("#input").get_attribute("aria-invalid") == "false"
    assert browser.errors() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("construction", ["simple", "modp", "kgram"])
def test_on_a_phone(browser, address, theme, construction):
    browser.open(address, width=390, height=844, theme=theme)
    status(browser, "attention")
    browser.find(f"input[value={construction}]").click()
    browser.until(SETTLED)
    for part in browser.find_all("summary"):
        browser.run("arguments[0].parentElement.open = true", part)
    assert browser.overflow() == 0
    assert browser.errors() == []
    dark = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)"
    assert dark == (theme == "dark")


def test_everything_has_a_name_and_can_be_reached_by_tab(browser, address):
    from selenium.webdriver.common.keys import Keys

    browser.open(address)
    status(browser, "attention")
    unnamed = """
    return [...document.querySelectorAll("input, textarea, svg, [tabindex='0']")].filter((one) =>
      !one.labels?.length && !one.getAttribute("aria-label")).map((one) => one.outerHTML)
    """
    assert browser.run(unnamed) == []
    reached = []
    browser.find("input[value=modp]").send_keys("")
    for _ in range(15):
        reached.append(browser.run("return document.activeElement.id || document.activeElement.tagName"))
        assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    names = ["period", "residue", "margin", "bits", "bits-infinite", "tolerance"]
    assert reached[1:9] == ["input", *(f"parameter-{name}" for name in names), "reset"]
    assert "SUMMARY" in reached


def test_the_link_to_the_answers_leaves_the_setting_in_the_address(browser, address):
    from selenium.webdriver.common.keys import Keys

    browser.open(f"{address}#construction=simple&omega=3&input=011")
    before = status(browser, "bound")
    browser.find("#skip").send_keys(Keys.ENTER)
    browser.until("return document.activeElement.id === 'bound-heading'")
    browser.driver.refresh()
    assert status(browser, "bound") == before
    assert browser.find("#parameter-omega").get_attribute("value") == "3"


def test_nothing_is_asked_of_other_servers(browser, address):
    browser.open(address)
    status(browser, "attention")
    asked = browser.network()
    assert any(one.endswith("/api/bound") for one in asked)
    assert all(one.startswith(address) for one in asked)


def test_infinite_precision_is_a_box_beside_the_bits(browser, address):
    browser.open(address)
    status(browser, "bound")
    browser.find("#parameter-bits-infinite").click()
    browser.until("return location.hash.includes('bits=infinite')")
    asked = {"construction": "modp", "bits": "infinite"}
    assert status(browser, "bound") == answer(address, "bound", asked)["sentence"]
    assert not browser.find("#parameter-bits").is_enabled()
    assert browser.find("#bound .number").text == answer(address, "bound", asked)["length_words"]
    assert browser.errors() == []


def test_the_address_holds_the_setting(browser, address):
    asked = {
        "construction": "kgram",
        "k": 1,
        "vocabulary": 4,
        "margin": 2.5,
        "tolerance": 0.3,
        "input": "(0132)^9",
    }
    browser.open(f"{address}#{urlencode(asked)}")
    assert status(browser, "bound") == answer(address, "bound", asked)["sentence"]
    assert status(browser, "simulation") == answer(address, "simulation", asked)["sentence"]
    type_input(browser, "(01)^7")
    browser.until("return location.hash.includes('input=%2801%29%5E7')")
    browser.driver.refresh()
    assert (
        status(browser, "attention") == answer(address, "attention", {**asked, "input": "(01)^7"})["sentence"]
    )
    browser.open(f"{address}#construction=modp&period=99&margin=NaN&bits=x&tolerance=-1&residue=1.5")
    assert status(browser, "bound") == answer(address, "bound", {"construction": "modp"})["sentence"]
    browser.find("#reset").click()
    assert browser.errors() == []


def test_the_command_is_copied(browser, address):
    browser.open(address)
    status(browser, "bound")
    granted = {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"],
        "origin": address.rstrip("/"),
    }
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", granted)
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")
    for panel in ("bound", "simulation"):
        browser.find(f"#{panel} .command button").click()
        browser.until("return document.getElementById('announce').textContent === 'Copied.'")
        asked = {"construction": "modp"}
        if panel == "simulation":
            asked["input"] = browser.find("#input").get_attribute("value")
        expected = answer(address, panel, asked)["command"]
        assert browser.run("return window.copied") == expected
        assert browser.find(f"#{panel} .command code").text == expected


def test_a_screen_reader_is_told_once_after_a_rest(browser, address):
    from selenium.webdriver.common.keys import Keys

    browser.open(address)
    status(browser, "bound")
    browser.run(
        "window.told = []; const told = document.getElementById('announce');"
        "new MutationObserver(() => window.told.push(told.textContent)).observe(told, { childList: true })"
    )
    browser.until("return new Promise((then) => setTimeout(() => then(true), 1300))")
    browser.find("#parameter-period").send_keys(*[Keys.ARROW_RIGHT] * 4)
    browser.until("return window.told.length")
    told = browser.run("return window.told")
    asked = {"construction": "modp", "period": 7}
    assert len(told) == 1
    assert told[0].startswith(answer(address, "bound", asked)["brief"])
    assert len(browser.find_all("[aria-live=polite]")) == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out(browser, address, theme):
    """WCAG AA: a contrast of at least 4.5 to 1."""
    browser.open(f"{address}#construction=modp&input=01101", theme=theme)
    status(browser, "attention")
    for part in browser.find_all("details"):
        browser.run("arguments[0].open = true", part)
    texts = browser.contrasts()
    assert len(texts) > 100
    assert [text for text in texts if text[0] < 4.5] == []
    type_input(browser, "2")
    browser.until("return !document.querySelector('#input-error').hidden")
    assert [text for text in browser.contrasts() if text[0] < 4.5] == []


def test_what_had_the_focus_keeps_it_and_what_was_open_stays_open(browser, address):
    browser.open(address)
    status(browser, "attention")
    browser.find("#bound summary").click()
    browser.resize(1000)
    browser.until(
        "return document.querySelector('#bound details').open && document.activeElement.tagName === 'SUMMARY'"
    )


def test_very_long_lengths_and_the_longest_input_fit(browser, address):
    for setting in (
        "construction=modp&margin=0.05&bits=64&period=12&input=1^1000",
        "construction=kgram&k=3&vocabulary=6&margin=50&tolerance=0.0001&input=(012345)^166",
    ):
        browser.open(f"{address}#{setting}", width=390)
        status(browser, "attention")
        assert browser.overflow() == 0
        assert browser.errors() == []
    assert "e142" in browser.find("#bound .number").text
