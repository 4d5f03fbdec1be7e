"""What theory predicts of length generalisation, for a task of decoders and a scheme of positions.

Huang et al. (ICLR 2025) tie what decoders learn at all lengths to programs: without positions to C-RASP,
with learned ones to C-RASP[periodic,local]. So the prediction is whether a program of the class does the
*task*: where the answer is a word, whether it predicts every symbol of it; for a language, whether it tells
after every prefix of a word what may follow (``lengthwise.crasp.decide_next``), which is easier than to tell
the language. That a program exists predicts something only if there are infinitely many inputs: whatever has
finitely many is in C-RASP. Of other schemes no theorem speaks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lengthwise.automata.automaton import strong_components
from lengthwise.crasp import Family, Program, Verdict, decide, decide_next, library, outputs, text_of
from lengthwise.crasp.library import functions
from lengthwise.crasp.library.entry import OWN, POSITIONAL, PUBLISHED
from lengthwise.crasp.program import END
from lengthwise.models.positions import SCHEMES
from lengthwise.tasks import ALGORITHMIC, FORMAL, Examples, LanguageTask, PredictionTask, Task
from lengthwise.tasks.algorithmic import (
    BinaryMajorityTask,
    CopyUniqueTask,
    InterleavedMajorityTask,
    MajorityTask,
    ParityTask,
    SortTask,
)

WITHOUT = "C-RASP"
COVERED: Mapping[str, str] = {"none": WITHOUT, "learned": POSITIONAL}
"""The schemes of which theory speaks, and the programs that it ties them to."""

Source = Literal["program", "decision", "proof", "unknown"]

FINITE = "there are finitely many inputs: some program always does these, which predicts nothing"

_WRITTEN: Mapping[type[PredictionTask], Callable[[Any], Program]] = {
    BinaryMajorityTask: lambda task: functions.majority(task.letters),
    MajorityTask: lambda task: functions.majority(task.letters),
    InterleavedMajorityTask: lambda _: functions.interleaved_majority(),
    CopyUniqueTask: lambda task: functions.copy_unique(task.letters),
    SortTask: lambda task: functions.sort_distinct(task.letters),
}
"""The programs of the library for tasks whose answer is a word."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What theory says of decoders with some scheme of positions on a task.

    - ``answer``: whether they are predicted to be right on longer inputs than those of training; None where
      theory predicts nothing;
    - ``fragment``: the programs in question: those that theory ties the scheme to; C-RASP where it ties it to
      none;
    - ``member``: whether one of them does the task at all lengths; None if that is not known;
    - ``source``: what ``member`` rests on: a program, the decision procedure for regular languages, a proof;
      ``method``: which of them;
    - ``why``: the answer's reason, in a few words;
    - ``program``: one of them that does the task, if there is one: it reads the task's streams and predicts
      its classes;
    - ``witness``: words that no program tells apart, where a decision has found some.
    """

    task: PredictionTask
    positions: str
    answer: bool | None
    fragment: str
    member: bool | None
    source: Source
    method: str
    why: str
    program: Program | None = None
    witness: Family | None = None

    def right(self, examples: Examples) -> Bool[Tensor, "B"]:
        """Whether the program predicts all that must be predicted, and nothing else, of each sequence."""
        if self.program is None:
            raise ValueError(f"no program of {self.fragment} is known that does {self.task.title}")
        logits = program_model(self.program, self.task)(examples.tokens)
        places = examples.places.unsqueeze(-1).expand(-1, -1, logits.shape[-1])
        return self.task.right(logits.gather(1, places), examples)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        program, witness = self.program, self.witness
        return {
            "task": self.task.name,
            "knobs": self.task.knobs,
            "positions": self.positions,
            "answer": self.answer,
            "fragment": self.fragment,
            "member": self.member,
            "source": self.source,
            "method": self.method,
            "why": self.why,
            "program": None if program is None else {**_measures(program), "text": text_of(program)},
            "witness": None if witness is None else vars(witness).copy(),
        }


def predictions(
    tasks: Iterable[PredictionTask] | None = None, schemes: Sequence[str] = SCHEMES
) -> list[Prediction]:
    """The predictions for some tasks, by default all of both suites, and schemes of positions."""
    chosen = [kind() for kind in (ALGORITHMIC | FORMAL).values()] if tasks is None else tasks
    return [predict(task, scheme) for task in chosen for scheme in schemes]


def predict(task: PredictionTask | Task, positions: str) -> Prediction:
    """What theory says of decoders with this scheme of positions on a task."""
    if positions not in SCHEMES:
        raise ValueError(f"positions must be one of {', '.join(SCHEMES)}, got {positions!r}")
    if not isinstance(task, PredictionTask):
        raise ValueError(f"{task.title} is no task of decoders: theory predicts by programs for those alone")
    fragment = COVERED.get(positions, WITHOUT)
    source, found = _standing(task, fragment == POSITIONAL)
    answer = found.answer
    if found.answer is None:
        why = "neither a program is known that does it nor a proof that there is none"
    elif found.answer:
        why = f"a program does it ({_described(found.witness)})"
    else:
        why = f"no program does it ({found.method})"
    if finite(task):
        answer, why = None, FINITE
    elif positions not in COVERED:
        member = {True: "does it", False: "does not exist", None: "is not known"}[found.answer]
        answer, why = None, f"no theorem covers these positions; a program without positions {member}"
    return Prediction(
        task,
        positions,
        answer,
        fragment,
        found.answer,
        source,
        found.method,
        why,
        program=found.witness if isinstance(found.witness, Program) else None,
        witness=found.witness if isinstance(found.witness, Family) else None,
    )


def finite(task: PredictionTask) -> bool:
    """Whether it is known that a task has finitely many inputs."""
    if isinstance(task, LanguageTask):
        dfa = task.automaton
        for first, *others in strong_components(dfa.transitions):
            if first in dfa.live and (others or first in dfa.transitions[first]):
                return False
        return True
    return type(task) in (CopyUniqueTask, SortTask)


def program_model(
    program: Program, task: PredictionTask
) -> Callable[[Int[Tensor, "B T"]], Float[Tensor, "B T C"]]:
    """A program as a model of a task: at every position of a stream 1 for each class that it predicts, -1 for
    the others. It need not read ``<eos>``, which in streams is padding alone.
    """
    known = {symbol: number for number, symbol in enumerate(program.alphabet)}
    strange = [symbol for symbol in task.alphabet if symbol not in known and symbol != END]
    if strange:
        raise ValueError(f"the program does not read {strange[0]!r}, a symbol of {task.title}")
    letters = torch.tensor([known.get(symbol, 0) for symbol in task.alphabet])
    classes = task.alphabet if task.kind == "token" else (*task.alphabet[1:], END)

    def logits(tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        predicted = outputs(program, letters.to(tokens.device)[tokens])
        never = torch.zeros_like(tokens, dtype=torch.bool)
        return torch.stack([predicted.get(symbol, never) for symbol in classes], -1) * 2.0 - 1.0

    return logits


@lru_cache(maxsize=256)
def _standing(task: PredictionTask, positional: bool) -> tuple[Source, Verdict]:
    """Whether a program of the class does a task, and what shows it; the witness of a yes is a program that
    reads the task's streams.
    """
    if isinstance(task, LanguageTask):
        return _decided(decide_next(task.automaton, positional=positional), OWN)
    if type(task) in _WRITTEN:
        program = _WRITTEN[type(task)](task)
        if positional or program.fragment != POSITIONAL:
            return "program", Verdict(True, program, "program of the library")
    if type(task) is ParityTask:
        # It is answered after the whole input: at an end mark.
        even = library.named("parity").automaton
        assert even is not None
        found = decide(even, acceptance="eos", positional=positional)
        return _decided(found, OWN if positional else PUBLISHED)
    if type(task) in ALGORITHMIC.values():
        entry = library.named(task.name)
        found = entry.in_positional if positional else entry.in_crasp
        assert found.answer is False, "programs are written above"
        return "proof", found
    return "unknown", Verdict(None)


def _decided(found: Verdict, source: str) -> tuple[Source, Verdict]:
    if found.answer is None:
        return "unknown", found
    if found.answer:
        return "program", found
    return "decision", Verdict(False, found.witness, f"{source}: {found.method}", found.details)


def _measures(program: Program) -> dict[str, Any]:
    return {name: getattr(program, name) for name in ("fragment", "depth", "period", "locality", "size")}


def _described(program: Program) -> str:
    used = [f"depth {program.depth}"]
    used += [f"period {program.period}"] if program.period > 1 else []
    used += [f"locality {program.locality}"] if program.locality else []
    return ", ".join(used)
