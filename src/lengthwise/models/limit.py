"""An ensemble of limit transformers: M of them along a leading axis, trained at once.

Axes in tensor names: M model, B batch, T position, H head, K type (token, residue), Q type of the query,
W distance in the window 0..locality, d width, m hidden unit, o output.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding, one_hot

from lengthwise._checks import whole
from lengthwise._messages import shown
from lengthwise.limit import Activation, Finite, Infinite, LimitTransformer, Precision
from lengthwise.limit.infinity import Layer, outputs_at_infinity
from lengthwise.models import mup
from lengthwise.models.stack import Stack
from lengthwise.models.two_layers import after_mlp, forward_two_layers
from lengthwise.sequences import Summary, types


@dataclass(frozen=True, kw_only=True)
class LimitModel:
    """The shape of a limit transformer to be trained.

    - ``width``, ``hidden``, ``heads``, ``layers``: sizes; one layer, or two in infinite precision; no MLP if
      ``hidden`` is 0;
    - ``period``: of the positional embedding; 1 means none;
    - ``locality``: the largest distance with a learnable logit of its own (of two layers, in the first);
      None means no such logits;
    - ``local_heads``: how many heads have such logits, the first ones; None means all;
    - ``precision``: ``Infinite()`` trains plain softmax attention, ``Finite(bits)`` attention sharpened
      by log N and cut off at 2^-bits.
    """

    width: int = 64
    hidden: int = 256
    heads: int = 1
    layers: int = 1
    period: int = 1
    locality: int | None = None
    local_heads: int | None = None
    precision: Precision = field(default_factory=Infinite)

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("hidden", 0), ("heads", 0), ("layers", 1), ("period", 1)):
            whole(getattr(self, name), name, least)
        if self.locality is not None and (
            isinstance(self.locality, bool) or not isinstance(self.locality, int) or self.locality < 0
        ):
            told = f"None or a whole number of at least 0, got {shown(self.locality)}"
            raise ValueError(f"locality must be {told}")
        if self.local_heads is not None and (
            isinstance(self.local_heads, bool)
            or not isinstance(self.local_heads, int)
            or not 0 <= self.local_heads <= self.heads
        ):
            raise ValueError(
                f"local_heads must be None or a whole number from 0 to the number of heads, {self.heads}, "
                f"got {shown(self.local_heads)}"
            )
        if not isinstance(self.precision, Finite | Infinite):
            raise ValueError(f"precision must be Finite(bits) or Infinite(), got {shown(self.precision)}")
        if self.layers > 2:
            raise ValueError(f"layers must be 1 or 2: ensembles of {self.layers} layers are not implemented")
        if self.layers == 2 and not isinstance(self.precision, Infinite):
            raise ValueError("two layers are trained in infinite precision only")

    @property
    def window(self) -> int:
        """How many of the last positions a summary must tell apart."""
        return (self.locality or 0) + 1

    def transformer(self, weights: Mapping[str, Tensor]) -> LimitTransformer:
        """The model with these trained weights, in float64, for the theory to look at."""
        for name, value in weights.items():
            if not value.is_floating_point():
                raise ValueError(f"{shown(name)} must hold real numbers, got {value.dtype}")
        tensors = {name: value.double() for name, value in weights.items()}
        tensors.setdefault("positions", torch.zeros(1, self.width, dtype=torch.float64))
        for layer in range(self.layers):
            no_local = torch.zeros(self.heads, 1, dtype=torch.float64)
            tensors.setdefault(f"layers.{layer}.local", no_local)
        activations: list[Activation] = ["relu"] * self.layers
        try:
            return LimitTransformer.from_tensors(tensors, self.precision, activations)
        except KeyError as error:
            raise ValueError(f"weights lack the tensor {error.args[0]!r}") from error

    def roles(self, vocabulary: int, outputs: int) -> dict[str, mup.Role]:
        """The parameters, by the names of ``LimitTransformer``."""
        width, heads, hidden = self.width, self.heads, self.hidden
        window = None if self.locality is None else self.window
        if self.layers == 2:
            return mup.two_layers(
                vocabulary,
                outputs,
                period=self.period,
                heads=heads,
                width=width,
                hidden=hidden,
                window=window,
                local_heads=self.local_heads,
            )
        roles = {"embedding": mup.embedding(vocabulary, width)}
        if self.period > 1:
            roles["positions"] = mup.embedding(self.period, width)
        for layer in range(self.layers):
            roles |= {
                f"layers.{layer}.key_query": mup.bilinear(heads, width, width, mlp=hidden > 0),
                f"layers.{layer}.value": mup.value(heads, width, width, mlp=hidden > 0),
                f"layers.{layer}.mlp_in": mup.mlp_in(hidden, width),
                f"layers.{layer}.mlp_bias": mup.bias(hidden),
                f"layers.{layer}.mlp_out": mup.mlp_out(width, hidden),
            }
            if window is not None:
                roles[f"layers.{layer}.local"] = mup.local_logits(heads, window, rows=self.local_heads)
        return roles | {"readout": mup.readout(outputs, width)}


class LimitEnsemble:
    """M limit transformers of one shape, each started from its own generator.

    Both forward passes give the output at the last position, and the same one: ``forward_counts``, for one
    layer, from the summaries of the strings, at a cost that does not depend on the length; ``forward_tokens``
    from the strings, at a cost linear in the length.
    """

    def __init__(
        self,
        model: LimitModel,
        *,
        vocabulary: int,
        outputs: int,
        generators: Sequence[torch.Generator],
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.stack = Stack(model.roles(vocabulary, outputs), generators, device=device, dtype=dtype)

    @property
    def size(self) -> int:
        """The number of models."""
        return self.stack.size

    def transformer(self, index: int) -> LimitTransformer:
        """One of the models, in float64, for the theory to look at."""
        return self.model.transformer(self.stack.weights(index))

    def forward_counts(self, summary: Summary) -> Float[Tensor, "M B o"]:
        """Outputs of one layer from summaries with batch axes (M, B)."""
        assert self.model.layers == 1
        layer = self._layer(0)
        y_MKd = self._type_vectors()
        near_MBWK = self._near_types(summary)
        query_MBK = near_MBWK[:, :, 0]

        table_MHQK = y_MKd.unsqueeze(1) @ layer["key_query"].mT @ y_MKd.unsqueeze(1).mT
        logits_MBHK = query_MBK @ table_MHQK.transpose(1, 2).flatten(2)
        logits_MBHK = logits_MBHK.unflatten(-1, (self.model.heads, y_MKd.shape[1]))
        attention_MBHK = self._attention(layer, summary, logits_MBHK, near_MBWK)

        # The residual stream at the last position is a mixture of K + H K fixed vectors.
        features = torch.cat([query_MBK, attention_MBHK.flatten(2)], -1)
        values_MHKd = y_MKd.unsqueeze(1) @ layer["value"].mT
        vectors = torch.cat([y_MKd, values_MHKd.flatten(1, 2)], 1)
        return self._finish(layer, features, vectors)

    def forward_tokens(self, tokens: Int[Tensor, "M B T"]) -> Float[Tensor, "M B o"]:
        """Outputs from the strings themselves."""
        layer = self._layer(0)
        y_MKd = self._type_vectors()
        if self.model.layers == 2:
            readout = self.stack.parameters["readout"]
            return forward_two_layers((layer, self._layer(1)), y_MKd, readout, tokens, self.model.period)
        models, kinds, width = y_MKd.shape
        offsets = kinds * torch.arange(models, device=tokens.device).view(-1, 1, 1)
        y_MBTd = embedding(types(tokens, self.model.period) + offsets, y_MKd.reshape(-1, width))
        query_MBd = y_MBTd[:, :, -1]

        seen_MBHd = torch.einsum("mhde,mbe->mbhd", layer["key_query"], query_MBd)
        logits_MBHT = seen_MBHd @ y_MBTd.mT
        log_length = torch.full((), math.log(tokens.shape[-1]), dtype=y_MBTd.dtype, device=tokens.device)
        if "local" in layer:
            reach = min(self.model.window, tokens.shape[-1])
            local = self._local(layer["local"], log_length)[..., :reach].flip(-1)
            logits_MBHT = logits_MBHT + torch.nn.functional.pad(local, (tokens.shape[-1] - reach, 0))
        weights_MBHT = self._softmax(logits_MBHT, torch.ones_like(log_length), log_length)
        attended_MBd = torch.einsum("mhde,mbhe->mbd", layer["value"], weights_MBHT @ y_MBTd)
        eye = torch.eye(width, dtype=y_MBTd.dtype, device=tokens.device).expand(models, -1, -1)
        return self._finish(layer, query_MBd + attended_MBd, eye)

    def at_infinity(self, often_MBW: Float[Tensor, "M B W"]) -> Float[Tensor, "M B W o"]:
        """The limits, in float64, of the outputs of two layers without positions on strings in which each
        window of ``model.window`` tokens occurs that often, by the window at the end: see ``limit.infinity``.
        """
        assert self.model.layers == 2
        assert self.model.period == 1
        layers = []
        for index in range(self.model.layers):
            own = {name: value.detach().double() for name, value in self._layer(index).items()}
            local = own.get("local", own["key_query"].new_zeros(self.size, self.model.heads, 1))
            layers.append(Layer(own["key_query"], own["value"], local, partial(after_mlp, own)))
        y_MSd, readout = (self.stack.parameters[name].detach().double() for name in ("embedding", "readout"))
        return outputs_at_infinity(y_MSd, layers, readout, often_MBW)

    def _layer(self, index: int) -> dict[str, Tensor]:
        prefix = f"layers.{index}."
        return {
            name.removeprefix(prefix): value
            for name, value in self.stack.parameters.items()
            if name.startswith(prefix)
        }

    def _type_vectors(self) -> Float[Tensor, "M K d"]:
        """Embedding of the token plus embedding of the residue, for every type."""
        y_MSd = self.stack.parameters["embedding"]
        if self.model.period == 1:
            return y_MSd
        return (y_MSd.unsqueeze(2) + self.stack.parameters["positions"].unsqueeze(1)).flatten(1, 2)

    def _near_types(self, summary: Summary) -> Float[Tensor, "M B W K"]:
        """Indicators of the type at each distance from the end, zero before the start."""
        period = self.model.period
        distances = torch.arange(summary.suffix.shape[-1], device=summary.suffix.device)
        residues = (summary.length.unsqueeze(-1) - distances) % period
        kinds = summary.suffix.clamp_min(0) * period + residues
        inside = (summary.suffix >= 0).unsqueeze(-1)
        return (one_hot(kinds, self.vocabulary * period) * inside).to(self.stack.values.dtype)

    def _attention(
        self, layer: dict[str, Tensor], summary: Summary, logits_MBHK: Tensor, near_MBWK: Tensor
    ) -> Float[Tensor, "M B H K"]:
        """How much each head attends to each type: softmax over atoms, each with its count."""
        log_length = summary.length.double().log().to(logits_MBHK.dtype)[..., None, None]
        count_MBK = summary.counts.double().flatten(-2)
        if "local" not in layer:
            count_MBK = count_MBK + near_MBWK.sum(2).double()
            return self._softmax(logits_MBHK, count_MBK.unsqueeze(2), log_length)
        near_MBHW = (logits_MBHK.unsqueeze(3) * near_MBWK.unsqueeze(2)).sum(-1)
        near_MBHW = near_MBHW + self._local(layer["local"], log_length)
        count_MBA = torch.cat([count_MBK, near_MBWK.sum(-1).double()], -1)
        weights_MBHA = self._softmax(
            torch.cat([logits_MBHK, near_MBHW], -1), count_MBA.unsqueeze(2), log_length
        )
        far_MBHK, near_MBHW = weights_MBHA.split([count_MBK.shape[-1], near_MBWK.shape[2]], -1)
        return far_MBHK + (near_MBHW.unsqueeze(-1) * near_MBWK.unsqueeze(2)).sum(3)

    def _local(self, local_MHW: Tensor, log_length: Tensor) -> Float[Tensor, "M #B H W"]:
        scale = log_length if isinstance(self.model.precision, Infinite) else 1.0
        return local_MHW.unsqueeze(1) * scale

    def _softmax(self, logits: Tensor, count: Tensor, log_length: Tensor) -> Tensor:
        """Attention to atoms that occur ``count`` times each: in finite precision the logits are log N
        times their distance from the largest one present, and weights from 2^-bits down are zero (rounding
        decides where a weight is 2^-bits exactly).
        """
        if isinstance(self.model.precision, Finite):
            largest = logits.detach().masked_fill(count == 0, -math.inf).amax(-1, keepdim=True)
            logits = log_length * (logits - largest)
            cutoff = -self.model.precision.bits * math.log(2)
            logits = logits.masked_fill(logits <= cutoff, -math.inf)
        return torch.softmax(logits + count.log().to(logits.dtype), -1)

    def _finish(self, layer: dict[str, Tensor], features: Tensor, vectors: Tensor) -> Float[Tensor, "M B o"]:
        """U (Y + B relu(A Y + b)) at Y = features @ vectors, by whichever product is smaller."""
        readout = self.stack.parameters["readout"]
        direct = features @ (vectors @ readout.mT)
        if self.model.hidden == 0:
            return direct
        if features.shape[-1] > vectors.shape[-1]:
            features = features @ vectors
            inward = layer["mlp_in"].mT
        else:
            inward = vectors @ layer["mlp_in"].mT
        features = torch.cat([features, torch.ones_like(features[..., :1])], -1)
        inward = torch.cat([inward, layer["mlp_bias"].unsqueeze(1)], 1)
        return direct + relu_readout(features, inward, readout @ layer["mlp_out"])


class _ReluReadout(torch.autograd.Function):
    """x, a, r -> relu(x a) r^T, with the few large products laid out along contiguous axes."""

    @staticmethod
    def forward(ctx: Any, x_MBk: Tensor, a_Mkm: Tensor, r_Mom: Tensor) -> Tensor:
        h_MBm = torch.bmm(x_MBk, a_Mkm).relu_()
        ctx.save_for_backward(x_MBk, a_Mkm, r_Mom, h_MBm)
        return torch.bmm(r_Mom, h_MBm.mT).mT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        (g_MBo,) = grad_outputs
        x_MBk, a_Mkm, r_Mom, h_MBm = ctx.saved_tensors
        # With one output the product is an outer one, which broadcasting does faster.
        d_MBm = g_MBo * r_Mom if g_MBo.shape[-1] == 1 else torch.bmm(g_MBo, r_Mom)
        torch.ops.aten.threshold_backward.grad_input(d_MBm, h_MBm, 0, grad_input=d_MBm)
        return torch.bmm(d_MBm, a_Mkm.mT), torch.bmm(x_MBk.mT, d_MBm), torch.bmm(g_MBo.mT, h_MBm)


def relu_readout(
    x_MBk: Float[Tensor, "M B k"], a_Mkm: Float[Tensor, "M k m"], r_Mom: Float[Tensor, "M o m"]
) -> Float[Tensor, "M B o"]:
    """relu(x a) r^T for each model: one hidden layer and its readout."""
    return _ReluReadout.apply(x_MBk, a_Mkm, r_Mom)  # pyright: ignore[reportReturnType]
