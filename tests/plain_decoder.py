"""A decoder as the books have it: one model, one module, loops over streams, heads and positions.

Nothing is shared with the library but the names of the weights.
"""

import cmath
import math

import torch
from torch import nn


def normed(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + 1e-5) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def wave(position, width):
    """Sines at even coordinates and cosines at odd ones, with a mean square of 0.02^2."""
    values = []
    for coordinate in range(width):
        angle = position / 10_000 ** ((coordinate - coordinate % 2) / width)
        values.append(math.cos(angle) if coordinate % 2 else math.sin(angle))
    return 0.02 * math.sqrt(2) * torch.tensor(values, dtype=torch.float64)


def rotated(vector, position):
    """Pairs of coordinates (k, k + half) as complex numbers, each turned by its own angle."""
    half = len(vector) // 2
    pairs = torch.complex(vector[:half], vector[half:])
    turns = [cmath.exp(1j * position * 10_000 ** (-k / half)) for k in range(half)]
    pairs = pairs * torch.tensor(turns, dtype=torch.complex128)
    return torch.cat([pairs.real, pairs.imag])


def bucket(distance):
    """32 buckets: 0 to 15 by themselves, then 16 whose bounds grow by a factor each up to 128."""
    if distance < 16:
        return distance
    bounds = [16 * 8 ** (k / 16) for k in range(17)]
    return 16 + max(k for k in range(16) if bounds[k] <= distance * (1 + 1e-12))


class PlainDecoder(nn.Module):
    def __init__(self, model, weights):
        super().__init__()
        self.model = model
        self.weights = nn.ParameterDict(
            {name.replace(".", "_"): nn.Parameter(value.clone()) for name, value in weights.items()}
        )

    def weight(self, name):
        return self.weights[name.replace(".", "_")]

    def forward(self, tokens, positions=None):
        """The logits at every position of one stream."""
        model, length = self.model, len(tokens)
        positions = list(range(length)) if positions is None else positions.tolist()
        rows = []
        for token, position in zip(tokens.tolist(), positions, strict=True):
            row = self.weight("embedding")[token]
            if model.positions == "learned":
                row = row + self.weight("positions")[position]
            if model.positions in ("sinusoidal", "randomised"):
                row = row + wave(position, model.width)
            rows.append(row)
        x = torch.stack(rows)
        for layer in range(model.layers):

            def own(name, layer=layer):
                return self.weight(f"layers.{layer}.{name}")

            inner = normed(x, own("attention_norm"), own("attention_norm_bias"))
            branch = self.attention(inner, own) @ own("attention_out") + own("attention_out_bias")
            x = x + branch
            inner = normed(x, own("mlp_norm"), own("mlp_norm_bias"))
            hidden = gelu(inner @ own("mlp_in") + own("mlp_in_bias"))
            x = x + hidden @ own("mlp_out") + own("mlp_out_bias")
        x = normed(x, self.weight("norm"), self.weight("norm_bias"))
        return x @ self.weight("readout" if "readout" in self.weights else "embedding").T

    def attention(self, x, own):
        model, length = self.model, len(x)
        each = model.width // model.heads
        query, key, value = (x @ own("attention_in") + own("attention_in_bias")).split(model.width, -1)
        heads = []
        for head in range(model.heads):
            part = slice(head * each, (head + 1) * each)
            q, k, v = query[:, part], key[:, part], value[:, part]
            if model.positions == "rotary":
                q = torch.stack([rotated(row, i) for i, row in enumerate(q)])
                k = torch.stack([rotated(row, i) for i, row in enumerate(k)])
            logits = q @ k.T / math.sqrt(each)
            if model.positions == "alibi":
                slope = 2 ** (-8 * (head + 1) / model.heads)
                logits = logits - slope * torch.tensor(
                    [[float(i - j) for j in range(length)] for i in range(length)], dtype=torch.float64
                )
            if model.positions == "relative":
                buckets = [[bucket(max(i - j, 0)) for j in range(length)] for i in range(length)]
                logits = logits + self.weight("by_bucket")[:, head][torch.tensor(buckets)]
            if model.log_scaling:
                logits = logits * torch.tensor(
                    [[math.log(i + 1)] for i in range(length)], dtype=torch.float64
                )
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            heads.append(torch.softmax(logits.masked_fill(later, -math.inf), -1) @ v)
        return torch.cat(heads, -1)
