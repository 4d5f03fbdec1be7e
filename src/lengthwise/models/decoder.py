"""An ensemble of decoders: M of them along a leading axis, trained at once.

Their shape is GPT-2's (Radford et al., 2019): LayerNorm before attention, before the MLP and before the
readout; an MLP of four times the width, with GELU in its tanh form, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715
x^3))); a readout that shares its weights with the token embeddings. There is no dropout.

Axes in tensor names: M model, B stream, T position, A place after which something is predicted, H head,
P row of the position table, d width, n columns of a matrix, C class.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lengthwise._checks import whole
from lengthwise._messages import shown
from lengthwise.models.decoder_forward import Shape, Streams, fold, forward_counts, forward_streams
from lengthwise.models.layers import fuses
from lengthwise.models.mup import Role
from lengthwise.models.positions import BUCKETS, DEVIATION, SCHEMES, Positions, sinusoids
from lengthwise.models.stack import Stack
from lengthwise.models.token_counts import token_counts

MOST_COUNTED = 32
"""One layer without positions is computed from counts of tokens if there are no more kinds than this."""

NEVER = -1e9
"""A logit that no model's own can make good: the sigmoid of what is near it is exactly 0, and so is its
gradient."""

MOST_SPARE = 2**20
"""As many positions as an input may have."""


@dataclass(frozen=True, kw_only=True)
class DecoderModel:
    """The shape of a decoder to be trained.

    - ``layers``, ``heads``, ``width``: sizes; the heads share the width;
    - ``positions``: how it is told positions, see ``lengthwise.models.positions``;
    - ``position_range``: how many positions "randomised" draws from;
    - ``spare_positions``: so many more learned positions there are than the longest stream has tokens. With
      none to spare, the last ones of a long stream are only ever the ends of training streams;
    - ``log_scaling``: attention logits are multiplied by the logarithm of the number of tokens seen.
    """

    layers: int = 1
    heads: int = 1
    width: int = 64
    positions: Positions = "none"
    position_range: int = 2048
    log_scaling: bool = False
    spare_positions: int = 0

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "width", "position_range"):
            whole(getattr(self, name), name, 1)
        whole(self.spare_positions, "spare_positions", 0, MOST_SPARE)
        if not isinstance(self.positions, str) or self.positions not in SCHEMES:
            raise ValueError(f"positions must be one of {', '.join(SCHEMES)}, got {shown(self.positions)}")
        if not isinstance(self.log_scaling, bool):
            raise ValueError(f"log_scaling must be true or false, got {shown(self.log_scaling)}")
        if self.spare_positions and self.positions != "learned":
            raise ValueError(
                f"spare_positions are of learned positions; with positions {self.positions!r} there are none"
            )
        if self.width % self.heads:
            raise ValueError(f"the width, {self.width}, must be a multiple of the {self.heads} heads")
        if self.positions == "rotary" and self.width // self.heads % 2:
            raise ValueError(
                f"rotary positions need heads of even width, got {self.width} / {self.heads} = "
                f"{self.width // self.heads}"
            )

    def span(self, longest: int) -> int:
        """How many positions there are for streams of up to ``longest`` tokens."""
        if self.positions != "randomised":
            return longest + self.spare_positions
        if longest > self.position_range:
            raise ValueError(
                f"randomised positions need a position_range of at least the longest stream, {longest}; "
                f"it is {self.position_range}"
            )
        return self.position_range

    def roles(self, vocabulary: int, classes: int | None, longest: int) -> dict[str, Role]:
        """The parameters, started as GPT-2's: deviation 0.02, smaller by sqrt(2 layers) where a branch joins
        the residual stream; biases 0, LayerNorm weights 1. Matrices and tables decay, vectors do not.
        """
        width = self.width
        joining = DEVIATION / math.sqrt(2 * self.layers)
        roles = {"embedding": _matrix(vocabulary, width)}
        if self.positions == "learned":
            roles["positions"] = _matrix(self.span(longest), width)
        if self.positions == "relative":
            roles["by_bucket"] = _matrix(BUCKETS, self.heads)
        for layer in range(self.layers):
            own = {
                "attention_norm": Role((width,), 0.0, 1.0, constant=1.0),
                "attention_norm_bias": _bias(width),
                "attention_in": _matrix(width, 3 * width),
                "attention_in_bias": _bias(3 * width),
                "attention_out": _matrix(width, width, deviation=joining),
                "attention_out_bias": _bias(width),
                "mlp_norm": Role((width,), 0.0, 1.0, constant=1.0),
                "mlp_norm_bias": _bias(width),
                "mlp_in": _matrix(width, 4 * width),
                "mlp_in_bias": _bias(4 * width),
                "mlp_out": _matrix(4 * width, width, deviation=joining),
                "mlp_out_bias": _bias(width),
            }
            roles |= {f"layers.{layer}.{name}": role for name, role in own.items()}
        roles |= {"norm": Role((width,), 0.0, 1.0, constant=1.0), "norm_bias": _bias(width)}
        if classes is not None:
            roles["readout"] = _matrix(classes, width)
        return roles


def _matrix(*shape: int, deviation: float = DEVIATION) -> Role:
    return Role(shape, deviation, 1.0, decay=1.0)


def _bias(size: int) -> Role:
    return Role((size,), 0.0, 1.0)


class DecoderEnsemble:
    """M decoders of one shape, each started from its own generator.

    - ``vocabulary``: how many tokens there are;
    - ``classes``: how many logits a place has, from a readout of their own; None for one of each token, by
      its embedding;
    - ``longest``: the most tokens of a stream that will be read.

    Decoders with readouts may have vocabularies and classes of their own, given as one number each. They then
    have the logits of all classes, those that they lack so negative that they change nothing.
    """

    def __init__(
        self,
        model: DecoderModel,
        *,
        vocabulary: int | Sequence[int],
        classes: int | Sequence[int] | None,
        longest: int,
        generators: Sequence[torch.Generator],
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        tokens = [vocabulary] * len(generators) if isinstance(vocabulary, int) else list(vocabulary)
        outputs = [classes] * len(generators) if isinstance(classes, int | None) else list(classes)
        self.model, self.vocabulary, self.longest = model, max(tokens), longest
        self.classes = max(own or self.vocabulary for own in outputs)
        self.span = model.span(longest)
        roles = model.roles(self.vocabulary, None if classes is None else self.classes, longest)
        each = [model.roles(*own, longest) for own in zip(tokens, outputs, strict=True)]
        self.stack = Stack(
            roles,
            generators,
            device=device,
            dtype=dtype,
            smaller=[
                {name: role.shape for name, role in own.items() if role.shape != roles[name].shape}
                for own in each
            ],
        )
        self._lacking: Tensor | None = None
        waves = None
        if model.positions in ("sinusoidal", "randomised"):
            waves = sinusoids(torch.arange(self.span, device=device), model.width, dtype)
        self.shape = Shape(model.layers, model.heads, model.positions, model.log_scaling, waves)

    @property
    def size(self) -> int:
        """The number of models."""
        return self.stack.size

    @property
    def counted(self) -> bool:
        """Whether a stream matters through counts of its tokens alone, and these are few."""
        model = self.model
        return model.layers == 1 and model.positions == "none" and self.vocabulary <= MOST_COUNTED

    def weights(self) -> dict[str, Tensor]:
        """What the forward passes take of the parameters; their gradients reach these."""
        norms = self.counted or not fuses(self.stack.values)  # kernels of our own have them for nothing
        found = fold(self.stack.parameters, self.model.layers, counted=self.counted, norms=norms)
        lacking = self._of_lacking()
        if lacking is not None:
            found["readout_bias"] = found["readout_bias"] + lacking if "readout_bias" in found else lacking
        return found

    def _of_lacking(self) -> Float[Tensor, "M 1 C"] | None:
        """What is added to the logits, 0 for the classes that a model has; None if all have all. It is made
        anew when models have left, and not while a step is recorded, which takes the one that is there.
        """
        if "readout" not in self.stack.roles:
            return None
        sizes = [self.stack.shape("readout", model)[0] for model in range(self.size)]
        if min(sizes) == self.classes:
            return None
        if self._lacking is None or len(self._lacking) != self.size:
            values = self.stack.values
            lacks = torch.arange(self.classes) >= torch.tensor(sizes).unsqueeze(1)
            self._lacking = lacks.unsqueeze(1).to(values.device, values.dtype) * NEVER
        return self._lacking

    def forward(
        self,
        tokens: Int[Tensor, "M B T"],
        places: Int[Tensor, "M B A"],
        positions: Int[Tensor, "M B T"] | None = None,
    ) -> Float[Tensor, "M B A C"]:
        """Logits after each of some places of a stream, from what it holds up to there.

        ``positions`` are those of the tokens where the scheme is "learned", by default from 0 on, or
        "randomised".
        """
        assert tokens.shape[-1] <= self.longest
        assert positions is not None or self.model.positions != "randomised"
        if self.counted:
            counts = token_counts(tokens, places, self.vocabulary, self.stack.values.dtype)
            logits = forward_counts(self.shape, self.weights(), counts)
        else:
            logits = forward_streams(self.shape, self.weights(), [Streams(tokens, places, positions)])
        return logits.unflatten(1, places.shape[1:])

    def position_logits(self) -> Float[Tensor, "M"]:
        """The sum over layers and heads of mean_j sum_{i >= j} [(p_i W_Q) . (p_j W_K)]^2, over all positions.

        - p_i: the learned vector of position i;
        - W_Q, W_K: a head's maps to queries and keys, without biases.

        The regulariser of Huang et al. (ICLR 2025).
        """
        p_MPd = self.stack.parameters["positions"]
        total_M = p_MPd.new_zeros(len(p_MPd))
        for layer in range(self.model.layers):
            in_Mdn = self.stack.parameters[f"layers.{layer}.attention_in"][..., : 2 * self.model.width]
            query, key = (p_MPd @ in_Mdn).unflatten(-1, (2, self.model.heads, -1)).unbind(2)
            logits_MHPP = query.transpose(1, 2) @ key.permute(0, 2, 3, 1)
            total_M = total_M + logits_MHPP.tril().square().sum((1, 2, 3)) / p_MPd.shape[1]
        return total_M
