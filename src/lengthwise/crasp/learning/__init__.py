"""Learning programs: from labelled words, from an oracle, and from automata.

A program is searched for by simulated annealing over ``slots``, with the words of a sample in flat arrays
(``values``), and refined by counterexamples (``search``). One that comes from an automaton is made smaller
(``simpler``), with a proof for each step (``following``). ``learn`` is all of it.
"""

from lengthwise.crasp.learning.learned import Learned
from lengthwise.crasp.learning.learner import learn
from lengthwise.crasp.learning.progress import Progress
from lengthwise.crasp.learning.slots import Shape

__all__ = ["Learned", "Progress", "Shape", "learn"]
