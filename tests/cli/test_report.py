"""``lengthwise report`` as a command."""

import json

import pytest
from test_main import fails

import lengthwise as lw
from lengthwise.cli import main
from report_runs import limit_rows, limit_run, write


@pytest.fixture
def store(tmp_path):
    runs = []
    for length, end in ((4, 0.3), (8, 0.001)):
        run = limit_run(length, 0)
        runs.append((run, limit_rows(run, end)))
    write(tmp_path / "store", runs)
    return tmp_path / "store"


def test_the_answer_and_the_paths_as_json(store, capsys):
    assert main(["report", str(store), "--format", "both", "--theory", "0", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"].startswith("For SimpleTask with omega = 8, training sequences of length 8 are")
    assert (told["runs"], told["seeds"], told["tolerance"]) == (2, 1, 0.01)
    (setting,) = told["settings"]["limit"]
    assert (setting["training_lengths"], setting["sufficient_length"]) == ([4, 8], 8)
    assert told["files"]["html"] == str(store / "report.html")
    assert told["files"]["markdown"] == str(store / "report.md")
    page = (store / "report.html").read_text()
    assert f"lengthwise report {store} --format both --theory 0 --json" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert len(lw.Store(store).runs()) == 2


def test_titles_and_folders(store, tmp_path, capsys):
    assert (
        main(
            [
                "report",
                str(store),
                "--theory",
                "0",
                "--title",
                "Mine & <yours>",
                "--output",
                str(tmp_path / "out"),
            ]
        )
        == 0
    )
    assert "length 8 are the shortest" in " ".join(capsys.readouterr().out.split())
    assert "<h1>Mine &amp; &lt;yours&gt;</h1>" in (tmp_path / "out/report.html").read_text()
    assert not (store / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report"], "RUNS"),
        (["report", "none"], "there is no folder none"),
        (["report", "."], "holds no runs"),
        (["report", "store", "--tolerance", "-1"], "tolerance must be positive"),
        (["report", "store", "--theory", "-1"], "theory must be a number of settings"),
        (["report", "store", "--format", "pdf"], "invalid choice 'pdf'"),
        (["report", "store", "--output", "store/taken"], "cannot make the folder"),
    ],
)
def test_mistakes_are_one_line(store, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(store.parent)
    (store / "taken").write_text("a file")
    assert message in fails(capsys, *arguments).splitlines()[-1]
    assert not (store / "report.html").exists()


def test_weights_that_cannot_be_read_leave_a_note_where_theory_would_stand(store, capsys):
    run = limit_run(8, 0)
    (store / run.id / "weights.safetensors").write_bytes(b"no weights")
    assert main(["report", str(store), "--format", "markdown"]) == 0
    assert "theory says nothing here" in (store / "report.md").read_text()
    capsys.readouterr()


def test_rows_that_cannot_be_read_are_told(store, capsys):
    run = limit_run(8, 0)
    (store / run.id / "metrics.parquet").write_bytes(b"no rows")
    assert f"{run.id}: metrics.parquet cannot be read" in fails(capsys, "report", str(store)).splitlines()[-1]
