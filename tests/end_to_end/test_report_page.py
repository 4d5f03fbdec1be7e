"""The report in a browser, opened from disk: what its controls do, in both themes, on a phone, no network."""

import csv
import io
import time

import pytest

import lengthwise as lw
from browser import chromium, needs_chromium
from lengthwise.experiments.folder import note, read_folder
from lengthwise.reporting.report import build, html_page
from report_runs import decoder_rows, decoder_run, limit_rows, limit_run, write

pytestmark = needs_chromium

EVIL = "</script><img src=x onerror=document.title='owned'>"
SEEDS = (0, 1, 2)

DRAWN = """
return ["losses", "plateaus", "bins", "learning"].every((name) =>
  document.querySelector(`[data-chart=${name}] .plot`).data)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "<b>runs"
    runs = []
    for omega in (4, 8):
        for length in (4, 8, 16):
            for seed in SEEDS:
                run = limit_run(length, seed, lw.SimpleTask(omega=omega))
                end = float("inf") if (omega, length, seed) == (8, 8, 1) else omega / length**3 * (1 + seed)
                runs.append((run, limit_rows(run, end)))
    for positions in ("none", "learned"):
        for seed in SEEDS:
            run = decoder_run(lw.task("parity"), positions, seed)
            runs.append((run, decoder_rows(run, 1.0, 0.5, 0.1 * seed)))
    write(folder / "runs", runs, {"machine": EVIL})
    note(folder, f"lengthwise sweep '{EVIL}'")
    return folder


@pytest.fixture(scope="module")
def page(folder):
    path = folder / "report.html"
    path.write_text(html_page(build(read_folder(folder), theory=0, title=EVIL)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium() as opened:
        opened.saved = tmp_path_factory.mktemp("saved")
        behaviour = {"behavior": "allow", "downloadPath": str(opened.saved)}
        opened.driver.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        yield opened


def opened(browser, page, **more):
    """The page with all its charts drawn, which are drawn when they come near the window."""
    browser.open(page.as_uri(), **more)
    for name in ("losses", "plateaus", "bins", "learning"):
        browser.run(f"document.querySelector('[data-chart={name}]').scrollIntoView()")
        browser.until(f"return document.querySelector('[data-chart={name}] .plot').data")
    browser.until(DRAWN)


def traces(browser, chart):
    """The lines and points of a chart: name, how many numbers, what is told of the first."""
    return browser.run(
        f"""return document.querySelector('[data-chart={chart}] .plot').data.map((trace) =>
        [trace.name, trace.y.filter((value) => value !== null).length, trace.fill || ""])"""
    )


def saved(browser, name):
    path = browser.saved / name
    for _ in range(100):
        if path.exists() and path.stat().st_size:
            break
        time.sleep(0.05)
    return path.read_bytes()


def press(browser, selector):
    browser.run("arguments[0].scrollIntoView({block: 'center'})", browser.find(selector))
    browser.find(selector).click()


def test_it_opens_from_disk_asks_nothing_and_runs_nothing_of_the_store(browser, page):
    opened(browser, page)
    assert browser.errors() == []
    assert browser.network() == []
    assert browser.run("return document.title") == EVIL
    assert browser.find("h1").text == EVIL
    assert browser.run("return document.images.length") == 0
    assert EVIL in browser.find("#made").text


def test_seeds_are_shown_one_by_one_or_not_at_all(browser, page):
    opened(browser, page)
    # Of 3 training lengths the seeds' lines and the median; the curves have 8, 8 and 7 points a seed.
    found = {name: count for name, count, _ in traces(browser, "losses")}
    assert (found["4"], found["seeds at 4"], found["seeds at 16"]) == (8, 24, 21)
    assert found["seeds at 8"] == 16  # one of the three diverged
    press(browser, "#losses-section input[value='2'][type=checkbox]")
    found = {name: count for name, count, _ in traces(browser, "losses")}
    assert (found["4"], found["seeds at 4"], found["seeds at 16"]) == (8, 16, 14)
    points = [count for name, count, _ in traces(browser, "plateaus") if name == "seeds"]
    assert points == [6, 5]
    press(browser, "#losses-section input[value=median]")
    assert [name for name, *_ in traces(browser, "losses")] == ["4", "8", "<b>16</b>"]
    assert not browser.find("#losses-section input[type=checkbox]").is_enabled()
    press(browser, "#losses-section input[value=range]")
    assert [fill for *_, fill in traces(browser, "losses")].count("tonexty") == 3
    press(browser, "#accuracy input[value=median]")
    assert [name for name, *_ in traces(browser, "bins")] == ["learned positions", "no positions"]
    assert browser.errors() == []


def test_another_setting_is_drawn(browser, page):
    from selenium.webdriver.support.select import Select

    opened(browser, page)
    last = "return document.querySelector('[data-chart=losses] .plot').data.at(-1).y.at(-1)"
    assert browser.run(last) == pytest.approx(8 / 16**3 * 2, rel=1e-5)
    Select(browser.find("[data-chart=losses] select")).select_by_visible_text("omega = 4")
    assert browser.run(last) == pytest.approx(4 / 16**3 * 2, rel=1e-5)


def test_hovering_tells_run_seed_value_and_error(browser, page):
    opened(browser, page)
    plot = "document.querySelector('[data-chart=losses] .plot')"
    read = f"return {plot}.data.find((one) => one.name === 'seeds at 4').text"
    run = limit_run(4, 1, lw.SimpleTask(omega=8))
    told = [text for text in browser.run(read) if "seed 1" in text][-1]
    assert told.split("<br>") == [
        "trained at 4, seed 1",
        "test length 10,000",
        "loss 0.25 ± 0.00025 (standard error)",
        f"run {run.id}",
    ]


def test_typing_filters_and_headings_sort(browser, page):
    opened(browser, page)

    def rows():
        return [row.text for row in browser.find_all("[data-table=limit-runs] tbody tr")]

    def typed(text):
        field = browser.find("#limit-runs-filter")
        field.clear()
        field.send_keys(text)
        return rows()

    assert len(rows()) == 18
    assert len(typed("seed=2")) == 6
    assert len(typed("seed=2 omega = 4")) == 3
    (lost,) = typed("diverged")
    assert limit_run(8, 1, lw.SimpleTask(omega=8)).id in lost
    assert browser.find("[data-table=limit-runs] .status").text == "1 of 18 runs"
    assert browser.find("[data-table=limit-runs] tbody tr").get_attribute("class") == "diverged"
    assert typed("nothing like it") == []
    typed("omega = 4")
    column = browser.run(
        "return [...document.querySelectorAll('[data-table=limit-runs] th button')].findIndex("
        "(one) => one.textContent === 'plateau')"
    )
    button = browser.find_all("[data-table=limit-runs] th button")[column]
    for order in ("ascending", "descending"):
        browser.run("arguments[0].click()", button)
        read = f"""return [...document.querySelectorAll('[data-table=limit-runs] tbody tr')].map(
            (row) => Number(row.cells[{column}].textContent))"""
        numbers = browser.run(read)
        assert numbers == sorted(numbers, reverse=order == "descending")
        assert len(set(numbers)) > 3
        heading = browser.find_all("[data-table=limit-runs] thead th")[column]
        assert heading.get_attribute("aria-sort") == order


def test_names_of_several_words_are_asked_for_too(browser, page):
    opened(browser, page)
    field = browser.find("#limit-runs-filter")
    assert browser.find("label[for=limit-runs-filter]").text == "filter runs of limit transformers"
    for text, count in (("trained at=8", 6), ("trained at = 16 seed=1", 2), ("TRAINED AT=8 diverged", 1)):
        field.clear()
        field.send_keys(text)
        assert browser.find("[data-table=limit-runs] .status").text == f"{count} of 18 runs"
    field = browser.find("#decoder-runs-filter")
    field.send_keys("to 20=0.500 positions=none")
    assert browser.find("[data-table=decoder-runs] .status").text == "3 of 6 runs"


AT = """
const plot = document.querySelector('[data-chart=losses] .plot');
const line = plot.data.find((one) => one.name === '4');
const {x, y} = plot.querySelector('.nsewdrag').getBoundingClientRect();
const {xaxis, yaxis} = plot._fullLayout;
return [x + xaxis.l2p(Math.log10(line.x.at(-2))), y + yaxis.l2p(Math.log10(line.y.at(-2)))];
"""


def test_a_tap_tells_what_is_there_and_leaves_the_axes_alone(browser, page):
    opened(browser, page, width=390, height=844)
    plot = browser.find("[data-chart=losses] .plot")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", plot)
    ranges = "const {xaxis, yaxis} = arguments[0]._fullLayout; return [xaxis.range, yaxis.range]"
    before = browser.run(ranges, plot)
    browser.tap(*browser.run(AT))
    browser.until("return document.querySelector('[data-chart=losses] .hoverlayer text')")
    assert "trained at 4" in browser.find("[data-chart=losses] .hoverlayer text").text
    browser.until("return new Promise((then) => setTimeout(() => then(true), 500))")
    assert browser.run(ranges, plot) == before
    assert browser.errors() == []


def test_the_tolerance_is_not_hidden_by_a_gridline(browser, page):
    opened(browser, page)
    for name in ("losses", "plateaus"):
        (line,) = browser.find_all(f"[data-chart={name}] .layer-above .shapelayer path")
        assert "stroke-dasharray" in line.get_attribute("style")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out(browser, page, theme):
    """WCAG AA: a contrast of at least 4.5 to 1."""
    opened(browser, page, theme=theme)
    texts = browser.contrasts()
    assert len(texts) > 200
    assert [text for text in texts if text[0] < 4.5] == []


def test_of_a_single_seed_there_is_none_to_choose(browser, tmp_path):
    run = limit_run(8, 0)
    write(tmp_path, [(run, limit_rows(run, 0.1))])
    path = tmp_path / "report.html"
    path.write_text(html_page(build(read_folder(tmp_path), theory=0)), encoding="utf-8")
    browser.open(path.as_uri())
    browser.until("return document.querySelector('[data-chart=losses] .plot').data")
    assert browser.find_all(".seeds") == []
    assert [name for name, *_ in traces(browser, "losses")] == ["seeds at 8", "8"]
    assert browser.errors() == []


def test_on_a_phone_tables_keep_their_words_together(browser, page):
    opened(browser, page, width=390, height=844)
    for caption in browser.find_all("caption span"):
        assert browser.run("return arguments[0].getBoundingClientRect().right", caption) <= 390
    broken = """return [...document.querySelectorAll('#prediction td, #runs th[scope=row]')].filter(
      (one) => one.textContent.length > 12 && one.offsetWidth < 120).map((one) => one.textContent)"""
    assert browser.run(broken) == []


def test_the_files_saved_hold_every_row(browser, page, folder):
    opened(browser, page)
    press(browser, "[data-download='measurements.csv']")
    rows = list(csv.DictReader(io.StringIO(saved(browser, "measurements.csv").decode())))
    table = lw.Store(folder / "runs").table()
    assert len(rows) == len(table)
    for column in ("run", "metric"):
        assert [row[column] for row in rows] == list(table[column])
    assert [float(row["value"]) for row in rows] == list(table["value"])
    press(browser, "[data-png=plateaus]")
    assert saved(browser, "plateaus.png").startswith(b"\x89PNG")
    assert browser.errors() == []
    assert browser.network() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_in_both_themes(browser, page, theme, tmp_path):
    opened(browser, page, width=390, height=844, theme=theme)
    assert browser.overflow() == 0
    paper = "return document.querySelector('[data-chart=losses] .plot').layout.paper_bgcolor"
    colors = {"light": "#ffffff", "dark": "#191f28"}
    other = {"light": "dark", "dark": "light"}[theme]
    assert browser.run(paper) == colors[theme]
    press(browser, "#theme")
    assert browser.run(paper) == colors[other]
    assert browser.find("#theme").text == f"{theme.capitalize()} theme"
    assert browser.errors() == []
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_everything_has_a_name_and_can_be_reached_by_tab(browser, page):
    from selenium.webdriver.common.keys import Keys

    opened(browser, page)
    unnamed = """
    const named = (one) => one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim();
    return [...document.querySelectorAll("main input, main select, main button, .plot, [tabindex='0']")]
      .filter((one) => !named(one)).map((one) => one.outerHTML)
    """
    assert browser.run(unnamed) == []
    assert browser.run("return document.querySelectorAll('body > svg:not([aria-hidden])').length") == 0
    assert (
        browser.run("return [...document.querySelectorAll('table')].filter((one) => !one.caption).length")
        == 0
    )
    assert browser.run("return document.querySelectorAll('th:not([scope])').length") == 0
    browser.run("window.scrollTo(0, 0); document.activeElement.blur()")
    reached = []
    browser.find("body").send_keys(Keys.TAB)
    for _ in range(12):
        reached.append(browser.run("return document.activeElement.id || document.activeElement.textContent"))
        assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert reached[:3] == ["Skip to the report", "theme", "What was asked"]
