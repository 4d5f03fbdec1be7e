"""The search: fit a sample, look for words on which the program is wrong, learn from them, shrink, prove."""

import contextlib
from collections.abc import Callable
from random import Random

from lengthwise.crasp.learning.annealing import Annealing
from lengthwise.crasp.learning.checking import witness
from lengthwise.crasp.learning.deadline import Deadline, OutOfTime
from lengthwise.crasp.learning.progress import Progress, Reporter
from lengthwise.crasp.learning.simpler import measure, smaller
from lengthwise.crasp.learning.slots import Shape, Slots, denoted
from lengthwise.crasp.learning.teachers import Teacher
from lengthwise.crasp.learning.words import power, written
from lengthwise.crasp.power import PowerWord, evaluate_power
from lengthwise.crasp.program import Program
from lengthwise.crasp.verdict import Verdict

STAGE = 16000
"""The moves of a stage."""

FROM_CURRENT = 2
"""After a counterexample, so many stages begin with the program that was wrong; the next begin anew."""

SHRINKING = 4000
"""The moves to make a program smaller."""

UNPROVED = 4
"""So many right programs are looked for, if none of them can be proved to be right."""

MOST_LETTERS = 5000
"""A counterexample is put into the sample if it has at most so many letters."""


class Search:
    """Learns from a teacher.

    What ``run`` has found is ``program``, in which nothing was found wrong, or None, with ``verdict``, what
    the teacher could prove of it; ``rounds`` says how many programs fitted the sample.
    """

    def __init__(
        self,
        teacher: Teacher,
        shape: Shape,
        seed: int,
        deadline: Deadline,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self._teacher, self._shape = teacher, shape
        self._reporter = Reporter(deadline, progress)
        self._annealing = Annealing(len(teacher.alphabet), shape, Random(seed))
        self._labels: dict[PowerWord, bool] = {}
        self.program: Program | None = None
        self.verdict: Verdict | None = None
        self.rounds = 0

    @property
    def counterexamples(self) -> list[PowerWord]:
        """Words on which programs that fitted the sample were wrong."""
        return list(self._labels)

    @property
    def moves(self) -> int:
        """How many changes were tried."""
        return self._annealing.moves

    def nearest(self) -> tuple[Program | None, list[PowerWord]]:
        """The program of least error on the sample, and the words known on which it is wrong."""
        best = self._annealing.best
        if best is None:
            return None, []
        program = self._denoted(best)
        return program, [*map(power, self._annealing.errors(best)), *self._far_errors(program)]

    def run(self) -> None:
        """Learn until a program is right, as far as the teacher can say, or until the time is over."""
        with contextlib.suppress(OutOfTime):
            self._sample = self._teacher.sample(())
            self._annealing.use(self._sample)
            self._annealing.restart()
            unproved = 0
            while unproved < UNPROVED:
                self._tick()
                self._fit()
                program = self._smaller()
                if program is None:
                    continue
                verdict = self._teacher.prove(program)
                if verdict is not None and verdict.answer is False:
                    self._learn_from([witness(verdict, program)], program)
                    continue
                self._keep(program, verdict)
                if verdict is None or verdict.answer:
                    return
                unproved += 1
                self._annealing.restart()

    def _fit(self) -> None:
        """Stages until a program has no error on the sample: from the current one, then from random ones."""
        stages = 0
        while not self._annealing.stage(STAGE, self._tick):
            stages += 1
            if stages >= FROM_CURRENT:
                self._annealing.restart()
        self.rounds += 1

    def _smaller(self) -> Program | None:
        """The current program, which fits the sample, made smaller; None if something is wrong with it before
        or after. If only after, it will be made smaller again with what was learned.
        """
        fitted = self._annealing.current
        if self._refuted(fitted):
            return None
        self._keep(self._denoted(fitted), None)
        self._annealing.shrink(SHRINKING, self._tick)
        if self._annealing.current != fitted and self._refuted(self._annealing.current):
            self._annealing.begin(fitted)
            return None
        program = self._denoted(self._annealing.current)
        while (found := next(filter(self._is_right, smaller(program)), None)) is not None:
            program = found
        return program

    def _is_right(self, program: Program) -> bool:
        """Whether nothing is found wrong."""
        self._tick()
        return self._sample.fits(program) and not self._errors(program)

    def _keep(self, program: Program, verdict: Verdict | None) -> None:
        """Take a program in which nothing is wrong, if it is proved right or there is no smaller one."""
        proved = verdict is not None and verdict.answer is True
        if proved or self.program is None or measure(program) <= measure(self.program):
            self.program, self.verdict = program, verdict

    def _refuted(self, slots: Slots) -> bool:
        """Whether there are words on which a program is wrong; if so, they are learned from."""
        program = self._denoted(slots)
        wrong = self._errors(program)
        if wrong:
            self._learn_from(wrong, program)
        return bool(wrong)

    def _errors(self, program: Program) -> list[PowerWord]:
        return self._far_errors(program) or self._teacher.refute(program)

    def _far_errors(self, program: Program) -> list[PowerWord]:
        """The counterexamples too long for the sample on which a program is wrong."""
        far = [word for word in self._labels if word.length > MOST_LETTERS]
        return [word for word in far if evaluate_power(program, word) != self._labels[word]]

    def _learn_from(self, words: list[PowerWord], program: Program) -> None:
        """Put words on which a program is wrong into the sample, and go on from the current rules; begin anew
        if words that are too long for the sample tell them wrong. What was found before is given up if it is
        wrong on these words.
        """
        self._labels |= {word: not evaluate_power(program, word) for word in words}
        short = [written(word) for word in self._labels if word.length <= MOST_LETTERS]
        self._sample = self._teacher.sample(short)
        self._annealing.use(self._sample)
        self._annealing.begin(self._annealing.current)
        if self._far_errors(self._denoted(self._annealing.current)):
            self._annealing.restart()
        found = self.program
        if found is not None and (not self._sample.fits(found) or self._far_errors(found)):
            self.program = self.verdict = None

    def _denoted(self, slots: Slots) -> Program:
        return denoted(slots, self._teacher.alphabet, self._shape, self._teacher.empty)

    def _tick(self) -> None:
        self._reporter.tick(self._stand)

    def _stand(self, left: float) -> Progress:
        return Progress(
            found=self.program is not None,
            size=self._annealing.size,
            error=self._annealing.best_error,
            rounds=self.rounds,
            counterexamples=len(self._labels),
            moves=self.moves,
            left=left,
        )
