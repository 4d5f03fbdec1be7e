"""
How long must the training sequences be?
========================================

SimpleTask asks for a wave of the difference of two proportions. We train a few small limit transformers at
short lengths, and ask how long the training sequences must be for the loss to stay within 0.05 at every
length up to 10^9.
"""

import lengthwise as lw
from lengthwise.reporting.advice import advice_figure
from lengthwise.reporting.words import advice_sentence

advice = lw.advise(
    lw.task("simple", omega=4),
    lw.LimitModel(width=32, hidden=64),
    tolerance=0.05,
    seeds=3,
    training=lw.Training(length=1, steps=600, batch=64, learning_rate=3e-3),
)
print(advice_sentence(advice))

# %%
# Every curve, every seed, the prediction from the pilot and the length that sufficed:

figure = advice_figure(advice)

# %%
# The same as a table, one row a run:

print(lw.plateaus(advice.results)[["training_length", "seed", "plateau", "trend"]].to_string(index=False))
