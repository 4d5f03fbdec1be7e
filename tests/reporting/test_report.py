"""What a report says, against numbers that the test works out from the rows that it wrote itself."""

import io
import json
import math
import re
import runpy
import shlex
from pathlib import Path
from statistics import median

import pandas as pd
import pytest

import lengthwise as lw
from laws import advice_of
from lengthwise import cli
from lengthwise.cli import report as report_command
from lengthwise.experiments.folder import note, read_folder
from lengthwise.reporting.report import build, html_page, write_markdown
from lengthwise.reporting.report.html import csv_text
from lengthwise.reporting.report.parts import Chart, RunsTable, Table
from lengthwise.reporting.words import advice_sentence
from report_runs import LENGTHS, decoder_rows, decoder_run, keep, limit_rows, limit_run, write

# The plateaus of three seeds at each training length, by omega; infinite where the run diverged.
PLATEAUS = {
    4: {4: (0.3, 0.2, 0.1), 8: (0.009, 0.02, 0.008), 16: (0.001, 0.002, 0.003)},
    8: {4: (0.4, 0.5, 0.45), 8: (0.2, math.inf, 0.1), 16: (0.02, 0.03, 0.04)},
}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    runs = []
    for omega, lengths in PLATEAUS.items():
        for length, ends in lengths.items():
            for seed, end in enumerate(ends):
                run = limit_run(length, seed, lw.SimpleTask(omega=omega))
                runs.append((run, limit_rows(run, end)))
    write(folder / "runs", runs)
    note(folder, "lengthwise sweep mine.py")
    return read_folder(folder)


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Without positions majority is right on long inputs, with learned ones and on parity not."""
    folder = tmp_path_factory.mktemp("suite")
    runs = []
    for task, positions, last in (
        ("binary-majority", "none", (0.9, 0.8, 0.2)),
        ("binary-majority", "learned", (0.5, 0.6, 0.9)),
        ("parity", "none", (0.1, 0.2, 0.3)),
    ):
        for seed, share in enumerate(last):
            run = decoder_run(lw.task(task), positions, seed)
            runs.append((run, decoder_rows(run, 1.0, (1 + share) / 2, share)))
    write(folder, runs)
    return read_folder(folder)


def chart(report, name):
    (found,) = [one for one in report.blocks(Chart) if one.name == name]
    return found.data


def cells(table, *headings):
    places = [table.headings.index(heading) for heading in headings]
    return [tuple(row[place] for place in places) for row in table.rows]


def test_the_answer_is_the_shortest_length_whose_median_is_within(sweep):
    report = build(sweep, theory=0)
    assert report.answer == (
        "The shortest training length whose plateau (median over seeds) is within 0.01 is 8 for omega = 4 "
        "and none up to 16 for omega = 8."
    )
    found = {one["setting"]: one["sufficient_length"] for one in report.found["settings"]["limit"]}
    assert found == {"omega = 4": 8, "omega = 8": None}
    wider = build(sweep, tolerance=0.035, theory=0)
    assert [one["sufficient_length"] for one in wider.found["settings"]["limit"]] == [8, 16]
    assert (report.found["runs"], report.found["seeds"], report.found["rows"]) == (18, 3, len(sweep.results))


def test_where_no_setting_suffices_the_answer_says_so_once(sweep):
    report = build(sweep, tolerance=1e-4, theory=0)
    assert report.answer == (
        "In none of the 2 settings is a plateau (median over seeds) within 0.0001, at training lengths up to "
        "16."
    )
    (table,) = report.blocks(Table)[:1]
    assert not table.strong
    assert "strong" not in table.note


def test_the_chart_of_losses_reaches_up_to_what_is_lost_near_the_training_length(tmp_path):
    run = limit_run(8, 0)
    rows = [
        (step, test, metric, 0.3 if (test, metric) == (8, "loss") else value)
        for step, test, metric, value in limit_rows(run, 0.001)
    ]
    write(tmp_path, [(run, rows)])
    (setting,) = chart(build(read_folder(tmp_path), theory=0), "losses")["settings"]
    low, high = setting["heights"]
    assert low < 0.001 < 0.3 < high


def test_a_rising_curve_is_within_no_tolerance(tmp_path):
    runs = []
    for length, rise in ((8, 0.5), (16, 0.0)):
        run = limit_run(length, 0)
        runs.append((run, limit_rows(run, 0.001, rise=rise)))
    write(tmp_path, runs)
    report = build(read_folder(tmp_path), theory=0)
    assert "training sequences of length 16 are the shortest measured" in report.answer
    trends = {point["length"]: point["trend"] for point in chart(report, "plateaus")["series"][0]["points"]}
    assert trends == {8: "rising", 16: "level"}


def test_longer_lengths_that_do_worse_are_told(tmp_path):
    runs = []
    for length, end in ((4, 0.1), (8, 0.005), (12, 0.05), (16, 0.004)):
        run = limit_run(length, 0)
        runs.append((run, limit_rows(run, end)))
    write(tmp_path, runs)
    assert "of the longer ones 12 did not do as well" in build(read_folder(tmp_path), theory=0).answer


def test_curves_and_plateaus_are_those_of_the_rows(sweep):
    report = build(sweep, theory=0)
    losses = {one["label"]: one for one in chart(report, "losses")["settings"]}
    for omega, lengths in PLATEAUS.items():
        groups = {group["length"]: group for group in losses[f"omega = {omega}"]["groups"]}
        assert set(groups) == set(lengths)
        for length, ends in lengths.items():
            group = groups[length]
            assert [one["seed"] for one in group["seeds"]] == [0, 1, 2]
            tests = [length, *(test for test in LENGTHS if test > length)]
            assert group["lengths"] == tests
            for place, test in enumerate(tests):
                values = [end / 10 if test < 30 else end for end in ends]
                assert group["median"][place] == pytest.approx(median(values), rel=1e-5)
                assert group["low"][place] == pytest.approx(min(values), rel=1e-5)
                assert group["high"][place] == (
                    pytest.approx(max(values), rel=1e-5) if math.inf not in ends else None
                )
                drawn = [one["losses"][place] for one in group["seeds"]]
                assert drawn == [pytest.approx(v, rel=1e-5) if math.isfinite(v) else None for v in values]
    assert [one["diverged"] for one in losses.values()] == [0, 1]
    for series in chart(report, "plateaus")["series"]:
        lengths = PLATEAUS[int(series["label"].removeprefix("omega = "))]
        assert {(p["length"], p["seed"]): p["value"] for p in series["points"]} == {
            (length, seed): pytest.approx(end, rel=1e-5) if math.isfinite(end) else None
            for length, ends in lengths.items()
            for seed, end in enumerate(ends)
        }
        assert series["median"] == [[n, pytest.approx(median(ends), rel=1e-5)] for n, ends in lengths.items()]


def test_no_seed_is_dropped(sweep):
    report = build(sweep, theory=0)
    (runs,) = report.blocks(RunsTable)
    rows = [dict(zip(runs.headings, row, strict=True)) for row in runs.texts()]
    told = {(row["setting"], int(row["trained at"]), int(row["seed"])): row for row in rows}
    assert len(told) == len(rows) == 18
    for omega, lengths in PLATEAUS.items():
        for length, ends in lengths.items():
            for seed, end in enumerate(ends):
                row = told[f"omega = {omega}", length, seed]
                assert row["plateau"] == (f"{end:.3g}" if math.isfinite(end) else "-")
                assert row["trend"] == ("level" if math.isfinite(end) else "diverged")
    plateaus = lw.plateaus(sweep.results).set_index("run")["plateau"]
    place = runs.headings.index("plateau")
    for row in runs.rows:
        number = row[place][1]
        assert plateaus[row[-1]] == (math.inf if number is None else number)
    (table,) = report.blocks(Table)[:1]
    assert cells(table, "omega", "trained at", "seeds", "diverged")[4] == ("8", "8", "3", "1")
    assert {cells(table, "omega", "trained at")[place] for place in table.strong} == {("4", "8")}


def test_files_hold_every_row_to_the_last_digit(sweep):
    report = build(sweep, theory=0)
    read = pd.read_csv(io.StringIO(csv_text(report.files["measurements.csv"])))
    assert len(read) == len(sweep.results)
    for column in ("run", "step", "test_length", "metric", "value", "task.omega", "training.seed"):
        assert list(read[column]) == list(sweep.results[column])
    plateaus = pd.read_csv(io.StringIO(csv_text(report.files["plateaus.csv"])))
    own = lw.plateaus(sweep.results).set_index("run")
    assert dict(zip(plateaus["run"], plateaus["plateau"], strict=True)) == dict(own["plateau"])


def test_an_advice_is_told_in_its_own_words(tmp_path):
    advice = advice_of(lambda length, seed: 0.05 * (7 / length) ** 3.5 * (1 + 0.02 * seed))
    folder = keep(tmp_path, advice)
    note(folder, "lengthwise demo", advice)
    report = build(read_folder(folder), theory=0)
    assert report.answer == advice_sentence(advice)
    drawn = chart(report, "plateaus")["advice"]
    assert drawn["predicted"] == advice.predicted_length
    assert drawn["confirmed"] == [12, pytest.approx(0.05 * (7 / 12) ** 3.5 * 1.02 * (1 - 0), rel=0.02)]
    decay = advice.prediction.decay
    assert decay is not None
    assert drawn["fit"]["seen"][0] == [decay.lengths[0], pytest.approx(decay.at(decay.lengths[0]), rel=1e-5)]
    assert [group["answer"] for group in chart(report, "losses")["settings"][0]["groups"]].count(True) == 1
    with pytest.raises(ValueError, match=r"holds an advice for the tolerance 0\.01: for another one"):
        build(read_folder(folder), tolerance=0.5)


def test_theory_is_labelled_and_of_the_trained_model(sweep):
    from lengthwise.experiments.theory import theory_beside

    report = build(sweep, theory=1, tolerance=0.25)
    section = next(one for one in report.sections if one.name == "theory")
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    assert table.rows[2][0] == "certified training length"
    assert table.rows[3][0] == "of this order (paper)"
    run = limit_run(4, 1, lw.SimpleTask(omega=4))  # its plateau, 0.2, is the median of 0.1, 0.2 and 0.3
    model = sweep.store.transformer(run.id)
    bound = theory_beside(lw.SimpleTask(omega=4), model, 0.25, 4).trained.bound
    assert table.rows[2][1] == f"{bound.length:,}"
    assert "1 of 2 settings are shown" in section.blocks[0]
    assert not any(one.name == "theory" for one in build(sweep, theory=0).sections)


def test_what_is_not_certified_is_not_given_as_a_certified_length(sweep):
    from dataclasses import replace

    from lengthwise.experiments.theory import theory_beside
    from lengthwise.reporting.words import theory_table

    model = sweep.store.transformer(limit_run(4, 1, lw.SimpleTask(omega=4)).id)
    known = theory_beside(lw.SimpleTask(omega=4), model, 0.25, None)
    none = replace(known.trained.bound, length=math.inf, certified=False)
    table = theory_table(replace(known, trained=replace(known.trained, bound=none)))
    columns = [list(column.cells) for column in table.columns]
    assert [row[:2] for row in zip(*columns, strict=True)][2] == ("certified training length", "none")


def test_prediction_and_outcome(suite):
    report = build(suite)
    assert report.found["settings"]["decoder"] == [
        {
            "setting": "binary-majority, positions = learned",
            "runs": 3,
            "generalises": False,
            "predicted": True,
            "agrees": False,
        },
        {
            "setting": "binary-majority, positions = none",
            "runs": 3,
            "generalises": True,
            "predicted": True,
            "agrees": True,
        },
        {
            "setting": "parity, positions = none",
            "runs": 3,
            "generalises": False,
            "predicted": False,
            "agrees": True,
        },
    ]
    assert report.answer.startswith(
        "Models generalise to longer inputs on binary majority (no positions), and do not on binary majority "
        "(learned positions) and parity. They are said to if the median seed is right on 70% "
    )
    assert "agree in 2 of the 3 cells" in report.answer
    table = report.blocks(Table)[-2]
    assert cells(table, "predicted", "generalises", "agrees") == [
        ("yes", "no", "no"),
        ("yes", "yes", "yes"),
        ("no", "no", "yes"),
    ]
    assert table.strong == {0}


def test_accuracies_are_those_of_the_rows(suite):
    report = build(suite)
    majority, parity = chart(report, "bins")["panels"]
    assert [one["label"] for one in majority["series"]] == ["learned positions", "no positions"]
    none = majority["series"][1]
    assert none["median"] == [1.0, 0.9, 0.8]
    assert [one["values"] for one in none["seeds"]] == [[1.0, 0.95, 0.9], [1.0, 0.9, 0.8], [1.0, 0.6, 0.2]]
    assert (majority["bins"], majority["within"]) == (["1 to 10", "11 to 20", "21 to 30"], 1)
    assert parity["series"][0]["median"] == [1.0, 0.6, 0.2]
    learning = {one["label"]: one for one in chart(report, "learning")["settings"]}
    last = learning["parity, positions = none"]["bins"][-1]
    assert learning["parity, positions = none"]["steps"] == [50, 100]
    assert last["median"] == [0.1, 0.2]
    assert [one["values"] for one in last["seeds"]] == [[0.05, 0.1], [0.1, 0.2], [0.15, 0.3]]


def test_a_run_that_stopped_counts_with_its_last_accuracy(tmp_path):
    runs = []
    for seed, share in enumerate((1.0, 0.4, 0.6)):
        run = decoder_run(lw.task("parity"), "none", seed)
        rows = decoder_rows(run, share, share, share)
        runs.append((run, [row for row in rows if seed or row[0] == 50]))
    write(tmp_path, runs)
    (one,) = chart(build(read_folder(tmp_path)), "learning")["settings"]
    # After 50 steps 0.5, 0.2 and 0.3; then the first has ended and keeps its 0.5 beside 0.4 and 0.6.
    assert one["bins"][0]["median"] == [0.3, 0.5]


def test_one_run_alone(tmp_path):
    run = limit_run(8, 0)
    write(tmp_path / "limit", [(run, limit_rows(run, 0.25))])
    answer = build(read_folder(tmp_path / "limit"), theory=0).answer
    assert answer == (
        "For SimpleTask with omega = 8, trained at length 8 and measured up to length 10^4: plateau: 0.25, "
        "interval 0.25 to 0.25, level, not within 0.01."
    )
    decoder = decoder_run(lw.task("parity"), "learned", 0)
    write(tmp_path / "decoder", [(decoder, decoder_rows(decoder, 1.0, 0.5, 0.25))])
    answer = build(read_folder(tmp_path / "decoder")).answer
    assert answer.startswith(
        "On parity, a decoder with learned positions trained on inputs up to length 10 is right on 100.0% of "
        "inputs of length 0 to 10, 50.0% of inputs of length 11 to 20 and 25.0% of inputs of length 21 to 30,"
    )


def test_of_one_decoder_the_figures_are_those_that_their_titles_name(tmp_path):
    run = decoder_run(lw.task("parity"), "learned", 0)
    write(tmp_path, [(run, decoder_rows(run, 1.0, 0.5, 0.25))])
    report = build(read_folder(tmp_path))
    by_bin, in_time = (one.figure().axes[0] for one in report.blocks(Chart))
    assert (by_bin.get_xlabel(), in_time.get_xlabel()) == ("longest input of the bin", "training steps")
    (line,) = [one for one in by_bin.lines if len(one.get_xdata()) == 3]
    assert list(line.get_ydata()) == [1.0, 0.5, 0.25]
    assert "agree in the one cell of which theory predicts" in report.sections[-2].blocks[0]


def test_the_dotted_line_is_told_of_only_where_it_is_drawn(suite, tmp_path):
    def caption(report):
        return next(one.caption for one in report.blocks(Chart) if one.name == "bins")

    assert "dotted line" in caption(build(suite))
    run = decoder_run(lw.task("parity"), "none", 0).but(length=4)  # shorter than the end of the first bin
    write(tmp_path, [(run, decoder_rows(run, 1.0, 0.5, 0.25))])
    report = build(read_folder(tmp_path))
    assert chart(report, "bins")["panels"][0]["within"] == 0
    assert "dotted line" not in caption(report)


def test_every_colour_stands_out_from_its_paper(sweep):
    from lengthwise.reporting.report import palette

    style = (Path(palette.__file__).parent / "page/style.css").read_text()
    papers = re.findall(r"--paper: (#\w+);", style)
    assert set(papers) == set(palette.PAPERS)
    assert palette.contrast("#ffffff", "#000000") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(
        4.48, abs=0.01
    )  # a pair that is well known
    pairs = [
        *palette.by_length(range(1, 30)).values(),
        *palette.by_setting([str(place) for place in range(12)]).values(),
        *palette.by_bin(5),
        *map(palette.of_scheme, palette.COLORS),
    ]
    for pair in pairs:
        for color, paper in zip(pair, palette.PAPERS, strict=True):
            assert palette.contrast(color, paper) >= 3


def test_the_tolerance_is_drawn_on_paper_too(sweep):
    (losses, _) = build(sweep, tolerance=1e-5, theory=0).blocks(Chart)
    for axes in losses.figure().axes:
        heights = [list(line.get_ydata()) for line in axes.lines]
        assert [1e-5, 1e-5] in heights
        assert axes.get_ylim()[0] < 1e-5


def test_runs_that_differ_in_precision_alone_are_two_settings(tmp_path):
    runs = [limit_run(8, 0), limit_run(8, 0, precision=lw.Finite(8))]
    write(tmp_path, [(run, limit_rows(run, 0.1)) for run in runs])
    settings = build(read_folder(tmp_path), theory=0).found["settings"]["limit"]
    assert [one["setting"] for one in settings] == ["precision = 8 bits", "precision = infinite"]


def test_what_is_drawn_is_thinned_and_says_so_but_tables_hold_all(tmp_path):
    runs = []
    for seed in range(300):
        run = limit_run(8, seed)
        runs.append((run, limit_rows(run, 0.001 * (seed + 1))))
    write(tmp_path, runs)
    report = build(read_folder(tmp_path), theory=0)
    (setting,) = chart(report, "losses")["settings"]
    (group,) = setting["groups"]
    assert len(group["seeds"]) == setting["drawn"] < setting["runs"] == 300
    assert group["median"][-1] == pytest.approx(0.1505)
    caption = next(one.caption for one in report.blocks(Chart) if one.name == "losses")
    assert "only some are drawn" in caption
    assert len(report.blocks(RunsTable)[0].rows) == 300
    assert report.files["measurements.csv"]["run"].nunique() == 300


def test_markdown_has_the_same_and_its_figures_beside_it(suite, sweep, tmp_path):
    for folder, name in ((suite, "suite"), (sweep, "sweep")):
        report = build(folder, theory=0)
        page, *beside = write_markdown(report, tmp_path / name)
        text = page.read_text()
        assert report.answer.split("(")[0] in text
        for path in beside:
            assert f"({path.name})" in text
            assert path.suffix == ".csv" or path.read_bytes().startswith(b"\x89PNG")
        for table in report.blocks(RunsTable):
            for row in table.texts():
                assert f"| {row[-1]} |" in text
    assert "lengthwise sweep mine.py" in text


def test_claims_stand_with_their_tests(sweep, tmp_path):
    from dataclasses import replace

    from lengthwise.experiments.claims import Claim

    falls = Claim(
        "b", "the plateau falls", "Page's test with seeds as blocks", -0.9, 1e-7, True, {0: -0.9}, {}
    )
    rises = Claim("c", "the plateau rises", "Page's test in every seed", 0.1, 0.2, False, {0: -0.1}, {})
    claims = (("one", falls), ("two", falls), ("two", rises))
    report = build(replace(sweep, claims=claims), theory=0)
    (said, table, tests) = next(one.blocks for one in report.sections if one.name == "claims")
    assert said.startswith("2 of 3 claims hold")
    assert cells(table, "task", "holds") == [("one", "yes"), ("two", "yes"), ("two", "no")]
    assert tests.entries == (("(b)", falls.test), ("(c)", rises.test))


def test_the_measure_of_a_big_report_runs(tmp_path):
    tools = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "report_size.py"))
    tools["main"](50, tmp_path)
    assert "50 runs, 5 settings, 1 seed" in (tmp_path / "report.html").read_text()


def test_text_from_stores_is_text(tmp_path):
    task = lw.task("language", expression="(a|<|/|s|>)*")
    run = decoder_run(task, "none", 0)
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    evil = "</script><img src=x onerror=alert(1)>|`*[x](javascript:alert(1))"
    write(folder / "runs", [(run, decoder_rows(run, 1.0, 0.5, 0.5))], {"device": evil})
    note(folder, f"lengthwise sweep '{evil}'")
    report = build(read_folder(folder), title=evil, command=evil)
    page = html_page(report)
    assert "<img" not in page.replace(plotly_itself(), "")
    assert page.count("</script>") == page.count("<script")
    data = page.split('id="report-data">')[1].split("</script>")[0]
    assert "(a|<|/|s|>)*" in json.loads(data)["charts"]["bins"]["panels"][0]["label"]
    written, *_ = write_markdown(report, tmp_path)
    text = written.read_text()
    outside = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert "<img" not in outside
    assert "[x](" not in outside


def test_the_example_of_the_page_on_reports_runs(tmp_path, monkeypatch):
    """And its command lines are understood."""
    page = (Path(__file__).parents[2] / "docs/how-to/report.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    assert names["report"].found["runs"] == 6
    assert names["report"].answer.replace("<", "&lt;") in (tmp_path / "runs/small/report.html").read_text()
    lines = re.findall(r"^\$ lengthwise report (.*)$", page, re.MULTILINE)
    assert [cli._parse(report_command, "report", shlex.split(line)).format for line in lines] == [
        "html",
        "both",
    ]


def plotly_itself():
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()
