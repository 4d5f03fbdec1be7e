"""The language C-RASP: syntax, evaluation, compilation, decisions.

::

    p = parse('accept = # "1" > # "0"')    # majority
    p("0110111")                           # True
    compile(p)                             # a limit transformer that computes it
    decide("(ab)*")                        # whether a regular language is in C-RASP
    decide_next("(ab)*")                   # whether a program tells what may follow each prefix of its words
    equivalent(p, p).answer                # True: whether two programs accept the same words
    learn(p).program                       # a program found from p's answers; also from examples, a DFA
    library.named("dyck-2").program        # programs by name
"""

from lengthwise.crasp import library
from lengthwise.crasp.batch import accepts, outputs
from lengthwise.crasp.builder import (
    TRUE,
    Formula,
    Number,
    Q,
    count,
    exists,
    forall,
    ind,
    maximum,
    minimum,
    mod,
    prev,
)
from lengthwise.crasp.compilation import compile, encode
from lengthwise.crasp.exactness import exact_length
from lengthwise.crasp.learning import Learned, Shape, learn
from lengthwise.crasp.power import PowerWord, evaluate_power, parse_power
from lengthwise.crasp.printer import text_of
from lengthwise.crasp.program import Program
from lengthwise.crasp.programs import closed_length, distinguishing_length, empty, equivalent, included
from lengthwise.crasp.regular import DFA, Classes, Family, classify, compile_regex, decide, decide_next
from lengthwise.crasp.stream import Stream
from lengthwise.crasp.syntax import parse
from lengthwise.crasp.trace import Trace, trace
from lengthwise.crasp.verdict import Verdict

__all__ = [
    "DFA",
    "TRUE",
    "Classes",
    "Family",
    "Formula",
    "Learned",
    "Number",
    "PowerWord",
    "Program",
    "Q",
    "Shape",
    "Stream",
    "Trace",
    "Verdict",
    "accepts",
    "classify",
    "closed_length",
    "compile",
    "compile_regex",
    "count",
    "decide",
    "decide_next",
    "distinguishing_length",
    "empty",
    "encode",
    "equivalent",
    "evaluate_power",
    "exact_length",
    "exists",
    "forall",
    "included",
    "ind",
    "learn",
    "library",
    "maximum",
    "minimum",
    "mod",
    "outputs",
    "parse",
    "parse_power",
    "prev",
    "text_of",
    "trace",
]
