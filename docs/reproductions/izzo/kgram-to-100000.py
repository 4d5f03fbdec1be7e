"""In-context 3-gram over two tokens on strings of up to 100,000 tokens: the runs of figure 4 with k = 3."""

import lengthwise as lw
from lengthwise.experiments.izzo import studies
from lengthwise.training import length_grid

evaluation = lw.Evaluation(lengths=length_grid(10**5, each=2), sequences=256)
by_k = studies("figure4", "paper", 9000)[1]
runs = [run.but(evaluation=evaluation) for run in by_k.runs if run.task.knobs["k"] == 3]
