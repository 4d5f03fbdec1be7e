"""The limit of a model against the model itself, on strings that repeat a word more and more often."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.limit import infinity
from lengthwise.limit.infinity import at_infinity, end_width

MODELS = st.fixed_dictionaries(
    {
        "vocabulary": st.integers(1, 3),
        # Largest phi over, at and under 1, alone and tied; far from 1, so that errors fall like 1/T.
        "local": st.lists(
            st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0]), min_size=3, max_size=3),
            min_size=1,
            max_size=3,
        ),
        "localities": st.lists(st.integers(0, 2), min_size=1, max_size=2),
        "hidden": st.sampled_from([0, 3]),
        "activation": st.just("relu"),
        "word": st.lists(st.integers(0, 2), min_size=1, max_size=7),
        "seed": st.integers(0, 10**6),
    }
)


def build(recipe):
    random = torch.Generator().manual_seed(recipe["seed"])
    d, size, heads, hidden = 3, recipe["vocabulary"], len(recipe["local"]), recipe["hidden"]

    def draw(*shape):
        return torch.randn(shape, generator=random, dtype=torch.float64)

    layers = []
    for index, locality in enumerate(recipe["localities"]):
        # The heads of the second layer take their local logits in another order.
        local = torch.tensor(recipe["local"], dtype=torch.float64).roll(index, 0)[:, : locality + 1]
        layers.append(
            lw.LimitLayer(
                0.1 * draw(heads, d, d),
                0.5 * draw(heads, d, d),
                local,
                draw(hidden, d),
                draw(hidden),
                draw(d, hidden),
            )
        )
    positions = 0.3 * draw(1, d)
    return lw.LimitTransformer(draw(size, d), positions, tuple(layers), draw(2, d), lw.Infinite())


def frequencies(word, width, size):
    """How often each window occurs in the word repeated for ever, by going through it once."""
    often = torch.zeros(1, size**width, dtype=torch.float64)
    endless = word * (width + 2)
    for end in range(width, width + len(word)):
        number = 0
        for token in endless[end - width : end]:
            number = number * size + token
        often[0, number] += 1 / len(word)
    return often


@settings(max_examples=60)
@given(MODELS)
def test_a_word_repeated_for_ever(recipe):
    f = build(recipe)
    size, width = recipe["vocabulary"], end_width(f)
    word = [token % size for token in recipe["word"]]
    limit = at_infinity(f, frequencies(word, width, size))[0]
    scale = 1 + float(limit.abs().max())
    errors = []
    for length in (10**3, 3 * 10**4):
        endless = torch.tensor(word * (length // len(word) + 1))
        end = 0
        for token in endless[-width:].tolist():
            end = end * size + token
        errors.append(float((f(endless) - limit[end]).abs().max()) / scale)
    assert errors[-1] < 0.05
    assert errors[-1] <= max(errors[0] / 15, 1e-9)


@settings(max_examples=30)
@given(MODELS, st.integers(1, 5), st.sampled_from([1, 500]))
def test_strings_do_not_mix(recipe, strings, numbers):
    """Each row alone gives what it gives among others, however few are computed at a time."""
    f = build(recipe)
    random = torch.Generator().manual_seed(recipe["seed"])
    shape = strings, f.vocabulary ** end_width(f)
    often = torch.rand(shape, generator=random, dtype=torch.float64)
    often[:, ::3] *= 0 if often.shape[1] > 1 else 1  # some windows never occur
    often /= often.sum(-1, keepdim=True)
    together = at_infinity(f, often)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(infinity, "NUMBERS_AT_ONCE", numbers)
        torch.testing.assert_close(at_infinity(f, often), together)
    alone = torch.cat([at_infinity(f, row.unsqueeze(0)) for row in often])
    torch.testing.assert_close(alone, together)


def test_the_induction_head_predicts_what_follows():
    """On an endless string the construction gives, within its tolerance, what follows the last token."""
    f = lw.constructions.induction_head(3, 0.01)
    word = [0, 1, 2, 1, 1, 0, 2, 2]
    width = end_width(f)
    limit = at_infinity(f, frequencies(word, width, 3))[0]
    after = {token: [0.0] * 3 for token in range(3)}
    for here, following in zip(word, word[1:] + word[:1], strict=True):
        after[here][following] += 1 / word.count(here)
    for end, often in enumerate(frequencies(word, width, 3)[0]):
        if often > 0:
            expected = torch.tensor(after[end % 3], dtype=torch.float64)
            assert (limit[end] - expected).abs().max() <= 0.01


def test_mistakes():
    f = lw.constructions.induction_head(2, 0.1)
    windows = 2 ** end_width(f)
    with pytest.raises(ValueError, match="infinite precision"):
        at_infinity(lw.constructions.simple_task(2, 8), torch.ones(1, 2))
    with pytest.raises(ValueError, match=f"shape \\(strings, {windows}\\), got \\(1, 3\\)"):
        at_infinity(f, torch.ones(1, 3))
    wrong = torch.full((1, windows), 1 / windows, dtype=torch.float64)
    wrong[0, 0] += 0.1
    with pytest.raises(ValueError, match="sum to 1"):
        at_infinity(f, wrong)
    wrong[0] = torch.tensor([-1.0, 2.0, *[0.0] * (windows - 2)])
    with pytest.raises(ValueError, match="at least 0"):
        at_infinity(f, wrong)
