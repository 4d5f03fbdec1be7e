"""
Small on average, large somewhere
=================================

Does a small *average* error say anything of the largest one? Not if the inputs of training never mix what the
inputs of use will mix. Here tokens 0 and 1 belong to one language, 2 and 3 to another, and every training
string is of one of the two, each half of the time.

f is zero. g has two heads that look for one token of each language, and says 1 if it finds both: it is zero
on every string that training can draw, at every length, and 1 on the string of the two tokens 0 and 2.
"""

import matplotlib
import torch

import lengthwise as lw
from lengthwise.bounds.average import average_error
from lengthwise.bounds.divergence import divergence
from lengthwise.reporting.canvas import ANSWER, FIT, STYLE, new_figure

# %%
# Hard attention from length 2 on: a logit of 16 with 16 bits. Each head reports whether its token occurs, and
# one hidden unit adds them up.

one_hot, found, out = slice(0, 4), (4, 5), 6
embedding = torch.zeros(4, 7, dtype=torch.float64)
embedding[:, one_hot] = torch.eye(4)
key_query, value = torch.zeros(2, 2, 7, 7, dtype=torch.float64)
for head, token in enumerate((0, 2)):
    key_query[head, token, one_hot] = 16.0
    value[head, found[head], token] = 1.0
mlp_in, mlp_out, readout = torch.zeros(3, 1, 7, dtype=torch.float64)
mlp_in[0, list(found)], mlp_out[0, out], readout[0, out] = 1.0, 1.0, 1.0
bias = torch.tensor([-1.0], dtype=torch.float64)
layer = lw.LimitLayer(key_query, value, embedding.new_zeros(2, 1), mlp_in, bias, mlp_out.mT)
g = lw.LimitTransformer(embedding, embedding.new_zeros(1, 7), (layer,), readout, lw.Finite(16))
f = lw.constructions.constant(4)


def within(model: lw.LimitTransformer, tokens: list[int]) -> lw.LimitTransformer:
    """The model on strings over some of its tokens."""
    return lw.LimitTransformer(
        model.embedding[tokens], model.positions, model.layers, model.readout, model.precision
    )


# %%
# Both numbers exactly, at every length: the average over strings of one language or the other (token
# probabilities from a flat Dirichlet distribution), and the largest error over all strings.

lengths = [1, 2, 3, 5, 8, 13, 21, 34, 55]
languages = [(within(f, tokens), within(g, tokens)) for tokens in ([0, 1], [2, 3])]
average = [sum(average_error(a, b, n, 1.0).value for a, b in languages) / 2 for n in lengths]
largest = [float(divergence(f, g, n)) for n in lengths]
print(f"average error: at most {max(average):.0e}, which is rounding, at every length")
print(f"largest error: {largest[0]} at length 1, {min(largest[1:]):.3f} or more from length 2 on")
print("a string on which they differ:", divergence(f, g, 5).tokens.tolist())

with matplotlib.rc_context(STYLE):
    figure = new_figure(5.0, 3.0)
    axes = figure.subplots()
    axes.plot(lengths, largest, "o-", color=ANSWER, label="largest over all strings")
    axes.plot(lengths, average, "s-", color=FIT, label="average over training strings")
    axes.set(xscale="log", xlabel="length of the string", ylabel="|f - g|", ylim=(-0.08, 1.12))
    axes.set_xticks(lengths, [str(n) for n in lengths])
    axes.minorticks_off()
    axes.legend(loc="center right")
