"""What a limit transformer is: its measures as data and as tables, its attention as a picture."""

import math
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table
from rich.text import Text
from torch import Tensor

from lengthwise.limit import Finite, LimitTransformer
from lengthwise.limit.norms import LayerNorms, layer_norms, lipschitz
from lengthwise.limit.reference import attentions
from lengthwise.limit.sensitivity import sensitivity
from lengthwise.reporting.canvas import GREY, STYLE, new_figure

LABELLED = 40
"""Up to this many tokens, the picture names each of them."""

LARGEST_WRITTEN = 2**64
"""Lengths up to here are written out; beyond, as powers of two."""


def inspection(f: LimitTransformer) -> dict[str, Any]:
    """The measures of a model as plain data; None stands for infinite, and for what is not defined.

    ``hardmax_length`` is None beyond 2^64 too, where ``log2_hardmax_length`` still tells it.
    """
    finite = isinstance(f.precision, Finite)
    one, two = len(f.layers) == 1, len(f.layers) == 2
    margin = f.logit_margin() if finite and one else None
    hard = f.hardmax_length() if finite and one else None
    bits = f.precision.bits if isinstance(f.precision, Finite) else None
    return {
        "layers": len(f.layers),
        "heads": [layer.heads for layer in f.layers],
        "hidden": [layer.hidden for layer in f.layers],
        "activations": [layer.activation for layer in f.layers],
        "width": f.embedding.shape[1],
        "vocabulary": f.vocabulary,
        "outputs": f.outputs,
        "period": f.period,
        "locality": f.locality,
        "bits": bits,
        "logit_margin": _known(margin),
        "hardmax_length": hard if hard is not None and hard <= LARGEST_WRITTEN else None,
        "log2_hardmax_length": bits / margin if bits is not None and margin else None,
        "positional_margin": None if finite else _known(f.positional_margin()),
        "regimes": None if finite else [list(layer) for layer in f.regimes()],
        "norms": [_norms(layer) for layer in layer_norms(f)],
        "lipschitz": _known(lipschitz(f)),
        "sensitivity": _known(sensitivity(f)) if one else None,
        "complexity": _known(f.complexity()) if one or (two and not finite) else None,
    }


def _known(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _norms(layer: LayerNorms) -> dict[str, Any]:
    heads = [
        {
            "key_query": head.key_query,
            "value": head.value,
            "diameter": head.diameter,
            "oscillation": head.oscillation,
        }
        for head in layer.heads
    ]
    mlp = {"mlp_in": layer.mlp_in, "mlp_out": layer.mlp_out, "lipschitz": _known(layer.lipschitz)}
    return {"heads": heads, **mlp}


def inspection_tables(f: LimitTransformer) -> Group:
    """The same for a terminal: a table of the model, one of its heads, one of its MLPs."""
    found = inspection(f)
    finite, one = isinstance(f.precision, Finite), len(f.layers) == 1
    model = Table("measure", "value", "what it is")
    shape = f"{found['layers']} layer{'' if one else 's'}, width {found['width']}"
    model.add_row("shape", shape, f"vocabulary {f.vocabulary}, {f.outputs} output{'s'[: f.outputs - 1]}")
    model.add_row("precision", f"{found['bits']:g} bits" if finite else "infinite", _PRECISION[finite])
    model.add_row("period", str(f.period), "after how many positions the positional embedding repeats")
    model.add_row("locality", str(f.locality), "the largest distance with a logit of its own")
    if finite and one:
        margin = found["logit_margin"]
        model.add_row("logit margin", number(margin), "smallest gap between two logits of one query")
        model.add_row("hardmax length", _hardmax(found), "from this length on attention is hard, exactly")
    elif finite:
        model.add_row("logit margin", "-", "defined for one layer")
    else:
        margin = found["positional_margin"]
        model.add_row("positional margin", number(margin), "what attention neglects falls like i^-margin")
    model.add_row(
        "Lipschitz constant", number(found["lipschitz"]), "of the last MLP and the readout together"
    )
    if one:
        meaning = "the output moves by at most this times the attention (total variation)"
        model.add_row("sensitivity", number(found["sensitivity"]), meaning)
    if found["complexity"] is not None and not one:
        meaning = "what training-length bounds set against the tolerance"
        model.add_row("complexity", number(found["complexity"]), meaning)

    heads = Table("layer", "head", *([] if finite else ["regime"]), "|key_query|", "|value|")
    for heading in ("diameter of values", "oscillation of logits"):
        heads.add_column(heading)
    mlps = Table("layer", "units", "activation", "|mlp_in|", "|mlp_out|", "Lipschitz constant")
    for index, (layer, norms) in enumerate(zip(f.layers, found["norms"], strict=True)):
        for head, sizes in enumerate(norms["heads"]):
            regime = [] if finite else [found["regimes"][index][head]]
            told = [number(size) if size is not None else "-" for size in sizes.values()]
            heads.add_row(str(index + 1), str(head + 1), *regime, *told)
        told = [number(norms[name]) for name in ("mlp_in", "mlp_out", "lipschitz")]
        mlps.add_row(str(index + 1), str(layer.hidden), layer.activation if layer.hidden else "-", *told)
    return Group(model, Text("heads"), heads, Text("MLPs"), mlps)


_PRECISION = {
    True: "weights exp(log N (a - max a)), 0 where that is at most 2^-bits",
    False: "local logits times log i, plain softmax",
}


def _hardmax(found: dict[str, Any]) -> str:
    if found["hardmax_length"] is not None:
        return f"{found['hardmax_length']:,}"
    power = found["log2_hardmax_length"]
    return "infinite" if power is None else f"2^{math.ceil(power)}"


def number(value: float | None) -> str:
    """A measure as a person would write it."""
    return "infinite" if value is None or math.isinf(value) else f"{value:.4g}"


def attention_figure(f: LimitTransformer, tokens: Tensor) -> Figure:
    """The attention of each head on one string: a panel a head, a row of panels a layer, a row a query."""
    layers = attentions(f, tokens.unsqueeze(0))
    columns = max(1, *(layer.heads for layer in f.layers))
    with matplotlib.rc_context(STYLE):
        figure = new_figure(max(4.4, 3.1 * columns + 0.7), 3.2 * len(layers) + 0.5)
        grid = figure.subplots(len(layers), columns, squeeze=False)
        image = None
        for index, weights in enumerate(layers):
            for head, axes in enumerate(grid[index]):
                if head >= weights.shape[1]:
                    axes.set_axis_off()
                    continue
                past = np.tri(len(tokens), dtype=bool)
                shown = np.where(past, weights[0, head].cpu().numpy(), np.nan)
                image = axes.imshow(shown, vmin=0, vmax=1, cmap=_COLORS)
                title = f"layer {index + 1}, head {head + 1}"
                if not isinstance(f.precision, Finite):
                    title += f" ({f.regimes()[index][head]})"
                axes.set_title(title, loc="left")
                _token_axes(axes, tokens, first=head == 0, last=index == len(layers) - 1)
        if image is not None:
            figure.colorbar(image, ax=grid, label="attention", shrink=0.8, aspect=30)
        figure.suptitle(f"attention on {len(tokens)} tokens", fontsize=11)
    return figure


_COLORS = matplotlib.colormaps["magma_r"]


def _token_axes(axes: Axes, tokens: Tensor, *, first: bool, last: bool) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(tokens) <= LABELLED:
        size = min(8.0, 190.0 / len(tokens))
        labels, places = [str(token) for token in tokens.tolist()], np.arange(len(tokens))
        axes.set_xticks(places, labels, fontsize=size, color=GREY)
        axes.set_yticks(places, labels, fontsize=size, color=GREY)
    else:
        places = torch.linspace(1, len(tokens), 6).round().int().tolist()
        axes.set_xticks([place - 1 for place in places], [str(place) for place in places])
        axes.set_yticks([place - 1 for place in places], [str(place) for place in places])
    if last:
        axes.set_xlabel("key" if len(tokens) <= LABELLED else "key position")
    if first:
        axes.set_ylabel("query" if len(tokens) <= LABELLED else "query position")
