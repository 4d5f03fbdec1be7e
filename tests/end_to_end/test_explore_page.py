"""The explorer's page in a browser: by keyboard, on a phone, in both themes."""

import threading

import pytest

from browser import chromium, needs_chromium
from lengthwise.cli.explore.server import serving
from lengthwise.reporting.explorer import attention_answer, bound_answer, simulation_answer

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
    with serving(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def status(browser, panel):
    browser.until(SETTLED)
    return browser.find(f"#{panel} .status").text


def type_input(browser, text):
    from selenium.webdriver.common.keys import Keys

    field = browser.find("#input")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(text)
    browser.until("return document.querySelector('#simulation').classList.contains('waiting')", 1)
    browser.until(SETTLED)


def test_sliders_and_constructions_by_keyboard(browser, address):
    from selenium.webdriver.common.keys import Keys

    browser.open(address)
    before = status(browser, "bound")
    assert before == bound_answer({"construction": "modp"})["sentence"]
    browser.find("#parameter-period").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    browser.until("return document.querySelector('#bound').classList.contains('waiting')", 1)
    assert status(browser, "bound") == bound_answer({"construction": "modp", "period": 5})["sentence"]
    assert browser.find("#parameter-period").get_attribute("aria-valuetext") == "5"
    assert browser.run("return document.querySelector('#parameter-residue').max") == "4"
    browser.find("input[value=modp]").send_keys(Keys.ARROW_DOWN)
    assert browser.run("return document.activeElement.value") == "kgram"
    assert status(browser, "bound") == bound_answer({"construction": "kgram"})["sentence"]
    assert browser.errors() == []


def test_an_input_is_simulated_and_attended_to(browser, address):
    browser.open(address)
    status(browser, "simulation")
    text = "(01)^150 1"
    type_input(browser, text)
    asked = {"construction": "modp", "input": text}
    assert status(browser, "simulation") == simulation_answer(asked)["sentence"]
    assert status(browser, "attention") == attention_answer(asked)["sentence"]
    assert not browser.find_all("#attention svg.map")
    type_input(browser, "0110")
    assert len(browser.find_all("#attention svg.map")) == 1
    browser.find("#attention summary").click()
    rows = browser.find_all("#attention tbody tr")
    weights = attention_answer({**asked, "input": "0110"})["heads"][0]["weights"]
    told = [[float(cell) for cell in row.text.split()] for row in rows]
    assert [row[:2] for row in told] == [[1, 0], [2, 1], [3, 1], [4, 0]]
    assert [row[2] for row in told] == pytest.approx(weights, rel=1e-3)
    assert browser.errors() == []


def test_a_mistake_is_told_and_mended(browser, address):
    browser.open(address)
    status(browser, "simulation")
    bound = status(browser, "bound")
    type_input(browser, "<b>7")
    assert "is not in the alphabet 0 1" in status(browser, "simulation")
    assert browser.find("#input").get_attribute("aria-invalid") == "true"
    assert status(browser, "bound") == bound
    type_input(browser, "01")
    assert "alphabet" not in status(browser, "simulation")
    assert browser.find("#input").get_attribute("aria-invalid") == "false"


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
    return [...document.querySelectorAll("input, textarea, svg, [tabindex]")].filter((one) =>
      !one.labels?.length && !one.getAttribute("aria-label")).map((one) => one.outerHTML)
    """
    assert browser.run(unnamed) == []
    reached = []
    browser.find("input[value=modp]").send_keys("")
    for _ in range(15):
        reached.append(browser.run("return document.activeElement.id || document.activeElement.tagName"))
        assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    names = ["period", "residue", "margin", "bits", "tolerance"]
    assert reached[1:6] == [f"parameter-{name}" for name in names]
    assert reached[6] == "input"
    assert "SUMMARY" in reached


def test_nothing_is_asked_of_other_servers(browser, address):
    browser.open(address)
    status(browser, "attention")
    asked = browser.network()
    assert any(one.endswith("/api/bound") for one in asked)
    assert all(one.startswith(address) for one in asked)
