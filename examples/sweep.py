"""A sweep: a baseline and changes. Run it with ``lengthwise sweep examples/sweep.py``."""

import lengthwise as lw

baseline = lw.Run(lw.SimpleTask(omega=8), lw.LimitModel(), lw.Training(length=16, steps=1000))
runs = lw.vary(baseline, omega=[4, 8, 16], length=[8, 16, 32], seed=range(3))
