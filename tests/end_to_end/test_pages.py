"""Every code block of the README and the documentation runs, and shows what it gives.

``docs/run_blocks.py`` has the rules; blocks marked "docs build" are run by ``make docs``.
"""

import json
import re
import shlex

import pytest
from run_blocks import MARKS, REASONS, ROOT, Block, blocks, commands, matches, pages, run_command, run_page

from lengthwise import cli

BLOCKS = [block for page in pages() for block in blocks(page)]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    "page",
    [page for page in pages() if blocks(page) and page.name != "schema.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_blocks_of_a_page_run(page, one_thread):
    ran = run_page(page, full=False)
    shown = [block for block in blocks(page) if _shows(block)]
    assert ran.compared >= len(shown)


def _shows(block: Block) -> bool:
    """Whether the tests hold something of a block against the page."""
    if block.mark in ("not run", "in tests", "file") or block.slow:
        return False
    if block.language == "python":
        return "# => " in block.text
    return block.language == "console" and any(wanted for _, wanted in commands(block))


def test_every_block_is_run_or_says_why_not():
    assert {block.language for block in BLOCKS} <= {"python", "console", "text", "json", "image"}
    for block in BLOCKS:
        if block.mark == "not run":
            assert block.told in REASONS, f"{block.place}: {block.told!r} is no reason"
        elif block.slow:
            assert block.told, f"{block.place}: why is it left to the docs build?"
        elif block.language in ("text", "json"):
            assert block.mark in ("output", "file"), block.place


def test_few_blocks_are_not_run():
    """Beside drawings and what sets the project up, which are no use of lengthwise."""
    left = [block for block in BLOCKS if block.mark == "not run" and block.told not in ("drawing", "sets up")]
    assert len(left) <= 8, [block.place for block in left]


def test_files_are_named_to_the_reader():
    for block in BLOCKS:
        if block.mark == "file":
            before = block.page.read_text().splitlines()[: block.line - 2]
            assert f"`{block.told}`" in "\n".join(before[-4:]), block.place


def test_what_is_left_out_matches_anything_and_nothing_else_does():
    assert matches("a...c\n", "abbc  \n")
    assert not matches("a...c", "abbcd")
    assert not matches("0.1 of 3", "0.11 of 3")
    assert matches("0.1 of 3", "0.15  of 3", loose=True)
    assert not matches("0.1 of 3", "0.25 of 3", loose=True)
    assert not matches("0.1 of 3", "0.1 for 3", loose=True)
    assert matches("1,000 │ 2e-08", "  1,900 │ 1.1e-08".strip(), loose=True)


def test_a_wrong_page_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("run_blocks.ROOT", tmp_path)
    for part in ("examples", "docs"):
        (tmp_path / part).mkdir()
    page = tmp_path / "page.md"
    for text, message in {
        "```python\n1 + 1  # => 3\n```": "page.md:2: the page shows\n3\nand it is\n2",
        "```python\n\n1 / 0\n```": "page.md:3: ZeroDivisionError",
        "```console\n$ lengthwise crasp run binary-majority 0\naccepted\n```": "and it is\nnot accepted",
        "```console\n$ lengthwise bund\n```": "did you mean",
        "```console\n$ rm file\n```": "nothing says how to run 'rm'",
        "```json\n{}\n```": "nothing says how to run a block of 'json'",
        "<!-- figure: none.png -->\n![x](none.png)": "have not made none.png",
    }.items():
        page.write_text(text + "\n")
        with pytest.raises(AssertionError, match=re.escape(message)):
            run_page(page, full=True)
    page.write_text("<!-- not run: GPU -->\ntext\n")
    with pytest.raises(ValueError, match="right before a block"):
        blocks(page)
    assert set(MARKS) >= {block.mark for block in BLOCKS if block.mark}


def test_a_shell_puts_paths_in_place_of_stars(tmp_path, monkeypatch):
    monkeypatch.setattr("run_blocks.ROOT", tmp_path)
    for part in ("examples", "docs"):
        (tmp_path / part).mkdir()
    page = tmp_path / "page.md"
    text = """```console
$ lengthwise train simple --omega 2 --length 4 --steps 2 --output runs/two
```
```console
$ lengthwise inspect runs/two/runs/*
```
"""
    page.write_text(text)
    assert "runs/two/runs/*" not in run_page(page, full=False).printed[1][1]
    page.write_text(text.replace("runs/*\n", "runz/*\n"))
    with pytest.raises(AssertionError, match=r"page\.md:4.*no file"):
        run_page(page, full=False)


def test_variables_before_a_command_are_set_for_it_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    narrow = run_command(["COLUMNS=60", "lengthwise", "tasks"], "")
    wide = run_command(["lengthwise", "tasks"], "")
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, wide.splitlines())) <= 100


def test_commands_of_pages_exist_even_where_they_are_not_run():
    lines = [line for block in BLOCKS if block.language == "console" for line, _ in commands(block)]
    asked = [
        shlex.split(line[line.index("lengthwise ") :], comments=True)
        for line in lines
        if re.match(r"([A-Z_]+=\S* )*lengthwise ", line)
    ]
    assert len(asked) > 40
    for words in asked:
        assert words[1] in cli.COMMANDS or words[1] in ("--version", "report"), words


def test_the_demo_of_the_readme_is_that_of_the_makefile():
    """``docs/run_blocks.py`` runs the one for the other."""
    assert README.count("$ make demo ") == 1
    assert "\ndemo: install\n\t$(BIN)/lengthwise demo\n" in (ROOT / "Makefile").read_text()


def test_every_folder_named_exists():
    folders = re.findall(r"(\w+)/", README.split("## Where things are")[1].split("```")[1])
    for folder in folders:
        assert any((base / folder).is_dir() for base in (ROOT, ROOT / "src", ROOT / "src/lengthwise")), folder


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    """Those of the site are checked by its build."""
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("http")]
    assert links
    for link in links:
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            plain = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in plain, link


SCHEMA = (ROOT / "docs/reference/schema.md").read_text()
SECTIONS = re.split(r"^### ", SCHEMA.split("## JSON of the commands")[1], flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.split("\n")[0].replace("`", ""))
def test_the_keys_of_a_command_are_those_of_the_schema(section, tmp_path, monkeypatch, one_thread):
    page = tmp_path / "docs" / "page.md"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page.parent.mkdir()
    (page.parent / "reproductions").symlink_to(ROOT / "docs/reproductions")
    page.write_text("### " + section)
    monkeypatch.setattr("run_blocks.ROOT", tmp_path)
    ran = run_page(page, full=False)
    assert not ran.left
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    told = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in rows]
    document = json.loads(ran.printed[-1][1])
    documents = document if isinstance(document, list) else [document]
    keys = {key for keys in told for key in keys}
    for one in documents[:3]:
        assert set(one) == keys
