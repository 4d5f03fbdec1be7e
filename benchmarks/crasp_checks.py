"""C-RASP confirmed at a scale too large for the tests: every way to an answer gives the same answer.

- evaluation: batches, streams, power words and compiled limit transformers on random programs, at every node
  and position;
- regular: programs extracted from automata on all short words, and families of words that defeat programs;
- questions: answers of solvers about programs against all short words;
- texts: malformed programs are refused with their line and column, in time, or are programs.

Prints what was compared. A disagreement is printed in full, and the exit status is 1. It needs the
development install: random programs and plain evaluators are those of the tests.
"""

import argparse
import sys
import traceback
from typing import Any

import torch
from crasp_checks_common import Progress, agree, helper, over
from crasp_checks_evaluation import evaluation
from crasp_checks_regular import regular
from crasp_checks_texts import malformed

from lengthwise.crasp import Program, Q, count
from lengthwise.crasp.program import Mode
from lengthwise.crasp.programs import counts, equivalent, included, phases

fragments = helper("crasp_fragments")
engines = helper("test_crasp_engines")


def questions(*, quick: bool) -> Progress:
    """Emptiness of random programs of the fragments that are decided, and what is known of brackets."""
    told = Progress("questions")

    def letters(drawn: tuple[int, Mode, Any]) -> None:
        engines.check_exact(counts, *drawn)
        told.add("programs of C-RASP_1")

    def one_sign(drawn: tuple[int, Mode, Any]) -> None:
        engines.check_exact(phases, *drawn)
        told.add("programs of C-RASP_+")

    over(50 if quick else 1000, letters, fragments.recipes(fragments.of_letters))
    over(50 if quick else 1000, one_sign, fragments.recipes(fragments.of_one_sign))
    for mode in ("last", "eos"):
        compare_brackets(mode)
        told.add("modes of brackets")
    return told


def compare_brackets(mode: Mode) -> None:
    """Dyck-1 written in two ways is proved to be one language; D_3 is not in D_2, by its shortest word."""
    height = count(Q("a")) - count(Q("b"))
    low = (count(height < 0) == 0) & (height == 0)
    falls = (count(Q("b") & (count(Q("a")) < count(Q("b")))) == 0) & (count(Q("a")) == count(Q("b")))
    first, second = (Program("ab", one, mode=mode, accepts_empty=True) for one in (low, falls))
    same = equivalent(first, second)
    agree(same.answer is True, "Dyck-1 in two ways", same)
    three, two = (
        Program("ab", (count((height < 0) | (height > most)) == 0) & (height == 0), mode=mode)
        for most in (3, 2)
    )
    larger = included(three, two)
    agree(larger.answer is False and larger.witness == "aaabbb", "D_3 in D_2", larger)
    agree(larger.details["shortest"], "D_3 in D_2", larger)


CHECKS = {"evaluation": evaluation, "regular": regular, "questions": questions, "texts": malformed}


def main() -> int:
    """Run the checks; 1 if any of them found a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checks", nargs="*", help=f"which of {', '.join(CHECKS)}; all if not given")
    parser.add_argument("--quick", action="store_true", help="a small part of each: about two minutes")
    chosen = parser.parse_args()
    if unknown := set(chosen.checks) - set(CHECKS):
        parser.error(f"unknown check {min(unknown)}: there are {', '.join(CHECKS)}")
    torch.set_num_threads(1)
    failed = []
    for name in chosen.checks or CHECKS:
        try:
            CHECKS[name](quick=chosen.quick).tell("done")
        except Exception:
            traceback.print_exc()
            print(f"{name}: DISAGREEMENT, see above", flush=True)
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "no disagreement")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
