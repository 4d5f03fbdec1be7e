"""Random and adversarial limit transformers for tests, and the definition in plain Python."""

import math

import torch
from hypothesis import strategies as st

import lengthwise as lw

RECIPES = st.fixed_dictionaries(
    {
        "precision": st.sampled_from(
            [lw.Infinite(), lw.Finite(1), lw.Finite(3), lw.Finite(10), lw.Finite(60)]
        ),
        "activation": st.sampled_from(["relu", "heaviside"]),
        "vocabulary": st.integers(1, 4),
        "width": st.integers(1, 4),
        "period": st.sampled_from([1, 2, 3, 7, 50]),
        "localities": st.lists(st.sampled_from([0, 1, 2, 5, 40]), min_size=1, max_size=3),
        "heads": st.integers(0, 4),
        "hidden": st.sampled_from([0, 1, 5]),
        "outputs": st.integers(1, 2),
        "weights": st.sampled_from(["normal", "integers", "zeros", "huge", "tiny"]),
        "length": st.one_of(st.integers(1, 12), st.integers(1, 300)),
        "one_token": st.booleans(),
        "seed": st.integers(0, 10**6),
    }
)


def build(recipe, layers=None):
    """A model and a batch of strings; integer weights make exact ties, zeros make everything tie."""
    random = torch.Generator().manual_seed(recipe["seed"])
    d, heads, hidden = recipe["width"], recipe["heads"], recipe["hidden"]

    def draw(*shape, kind="normal"):
        if kind == "integers":
            return torch.randint(-2, 3, shape, generator=random).double()
        scale = {"normal": 1.0, "zeros": 0.0, "huge": 30.0, "tiny": 1e-9}[kind]
        return scale * torch.randn(shape, generator=random, dtype=torch.float64)

    plain = "integers" if recipe["weights"] == "integers" else "normal"
    f = lw.LimitTransformer(
        draw(recipe["vocabulary"], d, kind=plain),
        draw(recipe["period"], d, kind=plain),
        tuple(
            lw.LimitLayer(
                draw(heads, d, d, kind=recipe["weights"]),
                draw(heads, d, d),
                draw(heads, tau + 1, kind="integers" if plain == "integers" else "normal"),
                draw(hidden, d),
                draw(hidden),
                draw(d, hidden),
                recipe["activation"],
            )
            for tau in recipe["localities"][:layers]
        ),
        draw(recipe["outputs"], d),
        recipe["precision"],
    )
    size = 1 if recipe["one_token"] else recipe["vocabulary"]
    return f, torch.randint(size, (2, recipe["length"]), generator=random)


def plain_output(f, word):
    """The output at the last position, by loops over lists: slow, and written apart from everything."""
    total = len(word)

    def dot(u, v):
        return math.fsum(a * b for a, b in zip(u, v, strict=True))

    def times(matrix, v):
        return [dot(row, v) for row in matrix]

    embedding, positions = f.embedding.tolist(), f.positions.tolist()
    y = [
        [a + b for a, b in zip(embedding[token], positions[i % len(positions)], strict=True)]
        for i, token in enumerate(word, start=1)
    ]
    for layer in f.layers:
        after = []
        for i in range(1, total + 1):
            new = list(y[i - 1])
            for head in range(layer.heads):
                seen = times(layer.key_query[head].tolist(), y[i - 1])
                logits = []
                for j in range(1, i + 1):
                    extra = float(layer.local[head][i - j]) if i - j <= layer.locality else 0.0
                    if f.precision == lw.Infinite():
                        extra *= math.log(i)
                    logits.append(dot(y[j - 1], seen) + extra)
                largest = max(logits)
                if f.precision == lw.Infinite():
                    weights = [math.exp(logit - largest) for logit in logits]
                else:
                    powers = [math.log2(total) * (logit - largest) for logit in logits]
                    weights = [0.0 if power <= -f.precision.bits else 2.0**power for power in powers]
                whole = math.fsum(weights)
                for j, weight in enumerate(weights):
                    if weight:
                        value = times(layer.value[head].tolist(), y[j])
                        new = [a + weight / whole * b for a, b in zip(new, value, strict=True)]
            before = [
                h + float(b) for h, b in zip(times(layer.mlp_in.tolist(), new), layer.mlp_bias, strict=True)
            ]
            hidden = [max(h, 0.0) if layer.activation == "relu" else float(h >= 0) for h in before]
            update = [dot(row, hidden) for row in layer.mlp_out.tolist()]
            after.append([a + b for a, b in zip(new, update, strict=True)])
        y = after
    return times(f.readout.tolist(), y[-1])
