"""
A baseline and changes
======================

A sweep is a Python file that ends with a list of runs: ``lengthwise sweep examples/sweep.py`` trains them,
goes on where it was stopped, and prints and draws their plateaus.
"""

import lengthwise as lw

baseline = lw.Run(lw.SimpleTask(omega=8), lw.LimitModel(), lw.Training(length=16, steps=1000))
runs = lw.vary(baseline, omega=[4, 8, 16], length=[8, 16, 32], seed=range(3))
