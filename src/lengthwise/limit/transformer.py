"""Limit transformers: the weights, checked once, when they are put together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from lengthwise._messages import shown
from lengthwise.limit.precision import Finite, Infinite, Precision
from lengthwise.sequences import Summary, check_tokens, whole_numbers

Activation = Literal["relu", "heaviside"]

MOST_PAIRS = 2**27
"""So many logits between types are held at once: a gigabyte."""


@dataclass(frozen=True, eq=False)
class LimitLayer:
    """One layer: H heads of attention, then an MLP with m hidden units, both added to the stream.

    - logit of position j for the query at i: a_ij = y_j^T ``key_query`` y_i + ``local``[i - j], where the
      second term is 0 beyond distance tau;
    - attention adds sum_h sum_j w_ij ``value`` y_j;
    - the MLP adds ``mlp_out`` act(``mlp_in`` y + ``mlp_bias``); heaviside(0) = 1.

    Shapes: key_query and value (H, d, d), local (H, tau + 1), mlp_in (m, d), mlp_bias (m), mlp_out (d, m).
    H and m may be 0.
    """

    key_query: Tensor
    value: Tensor
    local: Tensor
    mlp_in: Tensor
    mlp_bias: Tensor
    mlp_out: Tensor
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        for name in LAYER_TENSORS:
            object.__setattr__(self, name, _weights(getattr(self, name), name, axes=_LAYER_AXES[name]))
        width, heads, hidden = self.width, self.heads, self.hidden
        _same_shape("key_query", self.key_query, (heads, width, width), "(heads, width, width)")
        _same_shape("value", self.value, (heads, width, width), "that of key_query")
        _same_shape("local", self.local, (heads, max(self.local.shape[1], 1)), "(heads, tau + 1)")
        _same_shape("mlp_in", self.mlp_in, (hidden, width), "(hidden, width)")
        _same_shape("mlp_out", self.mlp_out, (width, hidden), "(width, hidden)")
        if not isinstance(self.activation, str) or self.activation not in ("relu", "heaviside"):
            raise ValueError(f"activation must be 'relu' or 'heaviside', got {shown(self.activation)}")

    @property
    def width(self) -> int:
        """The dimension d of the stream."""
        return self.key_query.shape[2]

    @property
    def heads(self) -> int:
        """The number H of heads."""
        return self.key_query.shape[0]

    @property
    def hidden(self) -> int:
        """The number m of hidden units."""
        return self.mlp_bias.shape[0]

    @property
    def locality(self) -> int:
        """The largest distance tau with a logit of its own."""
        return self.local.shape[1] - 1

    def after_mlp(self, y: Tensor) -> Tensor:
        """The stream after the MLP, for a stream (..., d) after attention."""
        before = torch.nn.functional.linear(y, self.mlp_in, self.mlp_bias)
        hidden = before.relu_() if self.activation == "relu" else (before >= 0).to(before.dtype)
        return torch.nn.functional.linear(hidden, self.mlp_out).add_(y)


_LAYER_AXES = {"key_query": 3, "value": 3, "local": 2, "mlp_in": 2, "mlp_bias": 1, "mlp_out": 2}
LAYER_TENSORS = tuple(_LAYER_AXES)
TENSORS = ("embedding", "positions", "readout")


@dataclass(frozen=True, eq=False)
class LimitTransformer:
    """A limit transformer over the tokens 0 .. S - 1, read at the last position.

    The stream starts at y_i = ``embedding``[x_i] + ``positions``[i % period], positions counted from 1;
    the output is ``readout`` y_T. Shapes: embedding (S, d), positions (period, d), readout (o, d); all
    tensors float64 and on one device.
    """

    embedding: Tensor
    positions: Tensor
    layers: tuple[LimitLayer, ...]
    readout: Tensor
    precision: Precision

    def __post_init__(self) -> None:
        for name in TENSORS:
            object.__setattr__(self, name, _weights(getattr(self, name), name, axes=2))
        object.__setattr__(self, "layers", tuple(self.layers))
        if self.vocabulary == 0:
            raise ValueError("embedding has no rows: the vocabulary must not be empty")
        if self.period == 0:
            raise ValueError("positions has no rows: the period must be at least 1")
        if not self.layers:
            raise ValueError("layers is empty: a limit transformer has at least one layer")
        width = self.embedding.shape[1]
        _same_shape("positions", self.positions, (self.period, width), "(period, width of embedding)")
        _same_shape("readout", self.readout, (self.outputs, width), "(outputs, width of embedding)")
        for index, layer in enumerate(self.layers):
            if not isinstance(layer, LimitLayer):
                raise ValueError(f"layers[{index}] must be a LimitLayer, got {type(layer).__name__}")
            expected = (layer.heads, width, width)
            _same_shape(f"layers[{index}].key_query", layer.key_query, expected, "(heads, width, width)")
        if not isinstance(self.precision, Finite | Infinite):
            raise ValueError(f"precision must be Finite(bits) or Infinite(), got {shown(self.precision)}")
        devices = {tensor.device for tensor in self.tensors().values()}
        if len(devices) > 1:
            raise ValueError(f"all tensors must be on one device, got {sorted(map(str, devices))}")

    @property
    def vocabulary(self) -> int:
        """The number S of tokens."""
        return self.embedding.shape[0]

    @property
    def outputs(self) -> int:
        """The dimension o of the output."""
        return self.readout.shape[0]

    @property
    def period(self) -> int:
        """After how many positions the positional embedding repeats."""
        return self.positions.shape[0]

    @property
    def locality(self) -> int:
        """The largest distance with a logit of its own, in any layer."""
        return max(layer.locality for layer in self.layers)

    def types(self) -> Tensor:
        """The start of the stream at a position of each type, (S * period, d), token by token."""
        return (self.embedding.unsqueeze(1) + self.positions).flatten(0, 1)

    def extended(self, period: int, locality: int) -> "LimitTransformer":
        """The same function, written with a period that is a multiple of its own and a locality at least its
        own: positions repeat, local logits are 0 beyond.
        """
        if period < 1 or period % self.period:
            raise ValueError(f"period must be a multiple of {self.period}, got {period}")
        if locality < self.locality:
            raise ValueError(f"locality must be at least {self.locality}, got {locality}")
        layers = tuple(
            replace(layer, local=torch.nn.functional.pad(layer.local, (0, locality - layer.locality)))
            for layer in self.layers
        )
        return replace(self, positions=self.positions.repeat(period // self.period, 1), layers=layers)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by the name that files give it."""
        own = {name: getattr(self, name) for name in TENSORS}
        inner = {
            f"layers.{index}.{name}": getattr(layer, name)
            for index, layer in enumerate(self.layers)
            for name in LAYER_TENSORS
        }
        return own | inner

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], precision: Precision, activations: Sequence[Activation]
    ) -> "LimitTransformer":
        """The model whose ``tensors()`` these are, with one activation a layer."""
        own = {name: tensors[name] for name in TENSORS}
        layers = []
        for index, activation in enumerate(activations):
            inner = {name: tensors[f"layers.{index}.{name}"] for name in LAYER_TENSORS}
            layers.append(LimitLayer(**inner, activation=activation))
        return cls(**own, layers=tuple(layers), precision=precision)

    def __call__(self, tokens: Tensor | Sequence[int]) -> Tensor:
        """The output at the last position: (o) for one string, (batch, o) for a batch of them."""
        return self.evaluate(tokens)

    def evaluate(
        self, tokens: Tensor | Sequence[int], method: Literal["fast", "reference"] = "fast"
    ) -> Tensor:
        """The same, by a chosen method; both are exact.

        - "fast": one layer by counting types, in one pass over the tokens; two layers by prefix counts, in
          linear time and, beside the tokens, constant memory; more layers, or tens of thousands of types, as
          "reference";
        - "reference": as the definition says, in time and memory quadratic in the length.
        """
        from lengthwise.limit.counting import evaluate_tokens
        from lengthwise.limit.prefixes import evaluate_two_layers
        from lengthwise.limit.reference import stream

        if not isinstance(method, str) or method not in ("fast", "reference"):
            raise ValueError(f"method must be 'fast' or 'reference', got {shown(method)}")
        tokens = whole_numbers(tokens, self.embedding.device)
        batch = self._batch(tokens)
        if method == "fast" and len(self.layers) == 1:
            output = evaluate_tokens(self, batch)  # which checks the tokens as it counts them
        else:
            check_tokens(batch, self.vocabulary)
            if method == "fast" and len(self.layers) == 2 and self._pairs() <= MOST_PAIRS:
                output = evaluate_two_layers(self, batch)
            else:
                output = stream(self, batch.long())[:, -1] @ self.readout.mT
        return _finite(output if tokens.dim() == 2 else output[0])

    def evaluate_counts(self, summary: Summary) -> Tensor:
        """The output of a one-layer model at the end of strings known only by their summaries, of any
        length: (o) for one summary, (batch, o) for summaries with one batch axis.
        """
        from lengthwise.limit.counting import check_summary, evaluate_summary

        if len(self.layers) != 1:
            raise ValueError(f"evaluate_counts needs a model of one layer, this one has {len(self.layers)}")
        output = evaluate_summary(self, check_summary(self, summary))
        return _finite(output.reshape(*summary.suffix.shape[:-1], self.outputs))

    def at_infinity(self, frequencies: Tensor) -> Tensor:
        """What the output tends to on endless strings with these frequencies of windows: see
        ``lengthwise.limit.infinity``.
        """
        from lengthwise.limit.infinity import at_infinity

        return at_infinity(self, frequencies)

    def _pairs(self) -> int:
        """How many logits between types the first layer has."""
        return self.layers[0].heads * (self.vocabulary * self.period) ** 2

    def _batch(self, tokens: Tensor) -> Tensor:
        """The tokens as a batch (B, T), or what is wrong with their shape."""
        if tokens.dim() not in (1, 2):
            raise ValueError(f"tokens must have one or two axes, got shape {tuple(tokens.shape)}")
        if tokens.shape[-1] == 0:
            raise ValueError("tokens is empty: a string has at least one token")
        return tokens.reshape(-1, tokens.shape[-1])

    def logit_margin(self) -> float:
        """gamma(f), of a one-layer model in finite precision: see ``lengthwise.limit.margins``."""
        from lengthwise.limit.margins import logit_margin

        return logit_margin(self)

    def hardmax_length(self) -> int | float:
        """From which length on attention is hard: see ``lengthwise.limit.margins``."""
        from lengthwise.limit.margins import hardmax_length

        return hardmax_length(self)

    def positional_margin(self) -> float:
        """The gap in infinite precision: see ``lengthwise.limit.margins``."""
        from lengthwise.limit.margins import positional_margin

        return positional_margin(self)

    def regimes(self) -> tuple[tuple[str, ...], ...]:
        """What dominates each head at great length: see ``lengthwise.limit.margins``."""
        from lengthwise.limit.margins import regimes

        return regimes(self)

    def complexity(self) -> float:
        """C(f), on which training-length bounds depend: see ``lengthwise.limit.complexity``."""
        from lengthwise.limit.complexity import complexity

        return complexity(self)

    def save(self, path: Path | str) -> None:
        """Write the model to a safetensors file."""
        from lengthwise.limit.files import save

        save(self, path)

    @staticmethod
    def load(path: Path | str) -> "LimitTransformer":
        """Read a model from a file that ``save`` wrote, running no code from it."""
        from lengthwise.limit.files import load

        return load(path)


def _finite(output: Tensor) -> Tensor:
    """An output, unless weights were so large that numbers on the way were not finite."""
    if not torch.isfinite(output).all():
        raise ValueError("the output is not finite: with weights as large as these, float64 overflows")
    return output


def _weights(tensor: object, name: str, axes: int) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
    if tensor.dtype != torch.float64:
        raise ValueError(f"{name} must be float64, got {str(tensor.dtype).removeprefix('torch.')}")
    if tensor.dim() != axes:
        raise ValueError(f"{name} must have {axes} axes, got shape {tuple(tensor.shape)}")
    if not torch.isfinite(tensor).all():
        raise ValueError(f"{name} must be finite, got infinities or NaN")
    return tensor.detach().clone()


def _same_shape(name: str, tensor: Tensor, expected: tuple[int, ...], meaning: str) -> None:
    if tuple(tensor.shape) != expected:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {expected}, {meaning}")
