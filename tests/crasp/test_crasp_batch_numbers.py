"""Integers as narrow as they may be: sums, windows and letters at the ends of every range."""

import numpy as np
import pytest
import torch
from crasp_programs import plain_values, with_tiles
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp import nodes
from lengthwise.crasp.batch import accepts, node_values, outputs
from lengthwise.crasp.batch_tile import LONG_WINDOW
from lengthwise.crasp.builder import Q, count, exists, ind, mod
from lengthwise.crasp.nodes import Count
from lengthwise.crasp.program import Program

pytestmark = pytest.mark.usefixtures("one_thread")

A, B = Q("a"), Q("b")


@pytest.mark.parametrize("tile", [997, 32_700, 2**15 - 1, 2**17])
def test_long_words_go_on_from_tile_to_tile(tile):
    """Sums of either sign leave the range of narrow integers, up to 10^5 and down to -2 * 10^5."""
    length, d = 10**5, count(A) - count(B)
    word = np.random.default_rng(3).random(length) < 0.3
    word[60_000:] ^= True
    windows = [(1, 2), tuple(range(40)), (0, 3, *range(50, 2000)), (5000,)]
    sums = [
        (d, np.cumsum(np.where(word, 1, -1))),
        (5 * count(A) - 7 * count(B) + 3, np.cumsum(np.where(word, 5, -7)) + 3),
    ]
    before = np.concatenate([np.zeros(length, dtype=int), word])
    sums += [(count(A, at=one), sum(before[length - back :][:length] for back in one)) for one in windows]
    formulas, expected = {}, {}
    for index, (one, values) in enumerate(sums):
        for k in {*np.quantile(values, [0, 0.2, 0.5, 1]).astype(int).tolist(), int(values.max()) + 1}:
            formulas[f"{index}>={k}"], expected[f"{index}>={k}"] = one >= k, values >= k
    late = sums[0][1] <= -20_000
    assert late.any()
    assert not late.all()
    formulas["ever"], expected["ever"] = exists(d <= -20_000), np.logical_or.accumulate(late)
    formulas["often"], expected["often"] = count(d <= -20_000) >= 10_000, np.cumsum(late) >= 10_000
    tokens = torch.tensor(~word, dtype=torch.long).unsqueeze(0)
    found = with_tiles(tile, outputs, Program("ab", next=formulas), tokens)
    for name, row in expected.items():
        assert (found[name][0].numpy() == row).all(), name


# Coefficients and lengths around whose products integers of 8, 16, 32 bits end.
BOUNDARIES = [
    *((1, length) for length in (126, 127, 128, 129, 255, 256)),
    *((127, length) for length in (1, 2, 258, 259)),
    *((128, length) for length in (1, 255, 256)),
    *((alpha, 1) for alpha in (2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**61)),
    (1, 2**15 - 1),
    (1, 2**15),
    (2**16, 2**15 - 1),
    (2**16, 2**15),
    ((2**31 - 1) // 7, 7),
    ((2**31 - 1) // 7 + 1, 7),
]


@pytest.mark.parametrize(("alpha", "length"), BOUNDARIES)
def test_sums_at_the_boundaries_of_narrow_integers(alpha, length):
    """alpha #a - (alpha - 1) #b from one extreme to the other, against numbers around both."""
    words = np.zeros((4, length), dtype=np.int64)
    words[1], words[2, length // 2 :], words[3, : length // 2] = 1, 1, 1
    beta = max(alpha - 1, 1)
    sums = np.where(words == 0, alpha, -beta).cumsum(1)
    low, high = int(sums.min()), int(sums.max())
    ends = [low, 0, high, *(end for size in (7, 15, 31) for end in (2**size, -(2**size)) if low < end < high)]
    thresholds = sorted({end + more for end in ends for more in (-1, 0, 1)} | {10**30, -(10**30)})
    program = Program("ab", next={str(k): alpha * count(A) - beta * count(B) >= k for k in thresholds})
    counts = [node for node in program.nodes if isinstance(node, Count)]
    tokens = torch.from_numpy(words)
    for tile in (length // 3 + 1, 2**16):
        together = with_tiles(tile, outputs, program, tokens)
        # Here each count is wanted too, so that none is summed before it is counted.
        roots = [program.root(str(k)) for k in thresholds]
        apart = with_tiles(tile, node_values, [*counts, *roots], tokens, "ab")
        for k, root in zip(thresholds, roots, strict=True):
            # Numpy compares with numbers beyond its own one by one.
            expected = sums >= k if abs(k) < 2**63 else np.full(sums.shape, k < 0)
            assert (together[str(k)].numpy() == expected).all(), (tile, k)
            assert torch.equal(apart[root], together[str(k)]), (tile, k)


@pytest.mark.parametrize("alpha", [126, 127, 128, 2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**57])
def test_indicators_and_windows_with_large_coefficients(alpha):
    """Sums that mix what is counted up to here with what is near."""
    word = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1]
    near = [sum(word[j] == 0 for j in (n - 1, n - 3) if j >= 0) for n in range(1, 12)]
    sums = [alpha * (word[n] == 0) - (alpha - 1) * near[n] + word[: n + 1].count(1) for n in range(len(word))]
    total = alpha * ind(A) - (alpha - 1) * count(A, at=[0, 2]) + count(B)
    program = Program("ab", next={str(k): total >= k for k in {*sums, *(s + 1 for s in sums)}})
    for tile in (1, 4, 100):
        found = with_tiles(tile, outputs, program, torch.tensor([word]))
        for k, row in found.items():
            assert row[0].tolist() == [s >= int(k) for s in sums]


DISTANCES = st.lists(
    st.one_of(
        st.integers(0, 90).map(lambda d: [d]),
        st.tuples(st.integers(0, 60), st.integers(LONG_WINDOW - 2, 70)).map(
            lambda pair: list(range(pair[0], sum(pair)))
        ),
    ),
    min_size=1,
    max_size=3,
).map(lambda lists: sorted({d for one in lists for d in one}))


@settings(max_examples=80)
@given(DISTANCES, st.integers(1, 300), st.sampled_from([0.1, 0.9, 1.0]), st.integers(1, 310))
def test_windows_of_any_distances(distances, length, density, tile):
    """Long runs of distances, whose running totals pass what the narrow integers of the result hold."""
    words = np.random.default_rng(len(distances) * length).random((3, length)) < density
    padded = np.concatenate([np.zeros((3, distances[-1]), dtype=int), words], 1)
    start = distances[-1]
    expected = sum(padded[:, start - d : start - d + length] for d in distances)
    one = nodes.count(A.node, distances)
    found = with_tiles(tile, node_values, [one], torch.from_numpy(~words).long(), "ab")[one]
    assert (found.numpy() == expected).all()


def test_alphabets_of_every_size():
    """Letters take as many bits as they need."""
    for letters in (1, 2, 126, 127, 128, 129, 200, 2**15 - 1, 2**15, 40_000):
        alphabet = [str(number) for number in range(letters)]
        tokens = torch.tensor([[letters - 1, 0, letters // 2, letters - 1, min(1, letters - 1)]])
        last, half = Q(alphabet[-1]), Q(alphabet[letters // 2])
        found = outputs(Program(alphabet, next={"last": last, "half": half}), tokens)
        assert found["last"].tolist() == (tokens == letters - 1).tolist()
        assert found["half"].tolist() == (tokens == letters // 2).tolist()
        ended = Program(alphabet, accept=~last & ~half & (count(last) >= 1), mode="eos")
        assert accepts(ended, tokens, torch.tensor([0])).tolist() == [False]
        assert accepts(ended, tokens).tolist() == [True]
        with pytest.raises(ValueError, match=f"between 0 and {letters - 1}, got 0 to {letters}"):
            accepts(ended, torch.tensor([[0, letters]]))


def test_positions_far_away():
    """Moduli and distances that no word reaches, with any coefficient."""
    tokens = torch.tensor([[0, 1, 0, 0, 1]])
    formulas = {
        "third": mod(10**30, 3),
        "tenth": mod(10**30, 10),
        "far": 10**40 * count(A, at=[9000]) + 2 * count(A) >= 5,
        "none": 10**40 * count(A, at=[5, 9000]) >= 1,
        "some": count(A, at=[4, 5, 6, 9000]) >= 1,
    }
    program = Program("ab", next=formulas)
    for tile in (1, 2, 10):
        found = with_tiles(tile, outputs, program, tokens)
        assert found["third"][0].tolist() == [False, False, True, False, False]
        assert not found["tenth"].any()
        assert found["far"][0].tolist() == [False, False, False, True, True]
        assert not found["none"].any()
        assert found["some"][0].tolist() == [False, False, False, False, True]
        counts = [node for node in program.nodes if isinstance(node, Count) and node.distances]
        values = with_tiles(tile, node_values, counts, tokens, "ab")
        assert sum(int(row.sum()) for row in values.values()) == 1


def test_sums_that_64_bits_may_not_hold_are_refused():
    """One below 2^62 is exact, 2^62 is refused; a window counts only as much as it can."""
    tokens = torch.tensor([[0, 0, 1, 0]])
    # The second count, 1 at most, keeps the coefficient of the first from being divided away.
    other = count(B, at=[1, 7])
    for window, most in ((None, 4), ([0, 2], 2), ([1, 9], 1)):
        alpha, one = (2**62 - 2) // most, count(A, at=window)
        for k in (1, 2, alpha, alpha + 1, 2 * alpha, 10**30):
            program = Program("ab", accept=alpha * one + other >= k)
            table = plain_values(program, [0, 0, 1, 0])[program.root()]
            assert outputs(program, tokens)["accept"][0].tolist() == table
        with pytest.raises(ValueError, match="exceed 2\\^62: evaluate word by word instead"):
            accepts(Program("ab", accept=(alpha + 1) * one + other >= 1), tokens)
