"""Runs that differ in nothing but training length and seed are a setting: settings told apart and named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lengthwise.experiments import Run
from lengthwise.experiments.run import PARTS
from lengthwise.experiments.sweeps import varied
from lengthwise.reporting.decoders import knob_heading
from lengthwise.reporting.tasks import knob as knob_words
from lengthwise.reporting.tasks import subject
from lengthwise.reporting.words import power_of_ten

SETTING = "setting"
"""The column that names a row's setting."""

ENTRIES = {
    "clip": "gradients shortened to",
    "ends": "bins up to",
    "every": "steps between measurements",
    "stop": "stop when perfect",
}
"""What entries of a specification are called where their names say too little."""

FEW = 4
"""So many values are told one by one."""


@dataclass(frozen=True)
class Setting:
    """What some runs have in common; ``label`` tells it from the other settings."""

    label: str
    runs: tuple[Run, ...]

    @property
    def subject(self) -> str:
        """The setting as the subject of a sentence, if there is no other."""
        return subject(self.runs[0].task)


def settings(
    runs: Sequence[Run], results: pd.DataFrame, *, by_length: bool = False
) -> tuple[list[str], list[Setting], pd.DataFrame]:
    """The columns in which runs of one family differ, the settings, and the results with the column
    ``SETTING`` and with what a specification has beside single values; ``by_length`` if each training length
    is a setting of its own.
    """
    results = results.assign(**_composite(runs, results))
    knobs = varied(results)
    if by_length and results["training.length"].nunique() > 1:
        knobs = [*knobs, "training.length"]
    by_id = {run.id: run for run in sorted(runs, key=_order)}
    first = results.groupby("run", sort=False).first()
    if not knobs:
        whole = Setting(subject(runs[0].task), tuple(by_id.values()))
        return knobs, [whole], results.assign(**{SETTING: whole.label})
    found: list[Setting] = []
    label_of: dict[str, str] = {}
    taken: set[str] = set()
    for key, rows in first.groupby(knobs, sort=True, dropna=False):
        label = _label(knobs, key if isinstance(key, tuple) else (key,))
        while label in taken:
            label += " (another)"
        taken.add(label)
        own = sorted((by_id[str(name)] for name in rows.index), key=_order)
        found.append(Setting(label, tuple(own)))
        label_of |= {str(name): label for name in rows.index}
    return knobs, found, results.assign(**{SETTING: results["run"].map(label_of)})


def _order(run: Run) -> tuple[int, int, str]:
    return run.training.length, run.training.seed, run.id


def _composite(runs: Sequence[Run], results: pd.DataFrame) -> dict[str, pd.Series]:
    """The entries of specifications that are no single values and differ between runs, in words."""
    told: dict[str, dict[str, str]] = {}
    for run in runs:
        for part, entries in run.specification().items():
            for name, value in entries.items():
                if isinstance(value, list | dict):
                    told.setdefault(f"{part}.{name}", {})[run.id] = value_words(value)
    return {
        column: results["run"].map(words) for column, words in told.items() if len(set(words.values())) > 1
    }


def _label(knobs: Sequence[str], values: Sequence[Any]) -> str:
    said = [
        knob_words(value) if column == "task.name" else f"{knob_heading(column)} = {knob_words(value)}"
        for column, value in zip(knobs, values, strict=True)
        if value is not None and value == value
    ]
    return ", ".join(said) or "the others"


def value_words(value: Any) -> str:
    """An entry of a specification as a person would write it."""
    if isinstance(value, dict):
        return "infinite" if value.get("kind") == "infinite" else f"{value.get('bits'):g} bits"
    if isinstance(value, list):
        if len(value) <= FEW:
            return ", ".join(map(value_words, value))
        return f"{value_words(value[0])} to {value_words(value[-1])} ({len(value)} of them)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return power_of_ten(value) if value > 10**4 else f"{value:,}"
    return knob_words(value)


def asked(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What was asked of runs of one family: entries that they share, and the values of those that vary."""
    tasks = list(dict.fromkeys(subject(run.task) for run in runs))
    more = f" and {len(tasks) - 12} more" if len(tasks) > 12 else ""
    family = {"limit": "limit transformer", "decoder": "decoder"}[runs[0].family]
    facts = [("task" if len(tasks) == 1 else "tasks", "; ".join(tasks[:12]) + more)]
    specifications = [run.specification() for run in runs]
    for part in PARTS[1:]:
        own = [each[part] for each in specifications]
        entries = []
        for name in own[0]:
            if part == "training" and name in ("length", "seed"):
                continue
            values = _distinct([one[name] for one in own])
            if values != [None]:
                told = ENTRIES.get(name, name.replace("_", " "))
                entries.append(f"{told} {_some([value_words(one) for one in values])}")
        facts.append((part, f"{family + ': ' if part == 'model' else ''}{', '.join(entries)}"))
    lengths = sorted({run.training.length for run in runs})
    seeds = sorted({run.training.seed for run in runs})
    facts.append(("training lengths" if len(lengths) > 1 else "training length", _numbers(lengths)))
    facts.append(("seeds" if len(seeds) > 1 else "seed", _numbers(seeds)))
    return facts


def _distinct(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _some(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"({' | '.join(words[:8])}{' | ...' if len(words) > 8 else ''})"


def _numbers(values: Sequence[int]) -> str:
    if len(values) > 2 and list(values) == list(range(values[0], values[-1] + 1)):
        return f"{values[0]} to {values[-1]}"
    if len(values) > 20:
        return f"{', '.join(map(str, values[:20]))}, ... {values[-1]} ({len(values)} of them)"
    return ", ".join(map(str, values))
