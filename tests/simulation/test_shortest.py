"""The shortest simulating string, against brute force over all strings."""

import itertools
import time
from fractions import Fraction

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import RECIPES
from test_counts import draw_summary, integer_pair, total_variation

import lengthwise as lw
from lengthwise.limit.reference import attention
from lengthwise.sequences import summarize
from lengthwise.simulation.attended import attended
from lengthwise.simulation.pair import Pair
from lengthwise.simulation.shortest import fewest_positions


def words(vocabulary, length):
    return torch.tensor(list(itertools.product(range(vocabulary), repeat=length)))


@settings(max_examples=60)
@given(RECIPES, RECIPES, st.integers(1, 9), st.sampled_from([0.0, 0.05, 0.4, 2.0]), st.integers(0, 10**6))
def test_shortest_of_all_strings(one, two, length, tolerance, seed):
    """No string that is shorter has outputs within the tolerance, and z has."""
    f, g = integer_pair({**one, "vocabulary": 2}, two)
    word = torch.randint(2, (length,), generator=torch.Generator().manual_seed(seed))
    found = lw.simulate(f, g, word, tolerance, "shortest")
    assert max(found.error_f, found.error_g) <= tolerance
    assert found.length <= lw.simulate(f, g, word, tolerance, "counts").length
    assert found.details["shortest_of_all"]
    for shorter in range(1, found.length):
        errors = torch.stack([(m(words(2, shorter)) - m(word)).norm(dim=-1) for m in (f, g)]).amax(0)
        assert (errors > tolerance).all()


def hard_attentions(pair, word):
    """For each head whose values differ: its attention at the last position by (type of far key) and
    (distance of near one), its largest logit, and whether keys with the same logit have the same value.
    """
    position = torch.arange(1, len(word) + 1)
    kinds = (word * pair.period + position % pair.period).tolist()
    result = []
    for model in pair.models:
        y = (model.embedding[word] + model.positions[position % model.period]).unsqueeze(0)
        everything = attention(model.layers[0], y, lw.Finite(1e-9))[0, :, -1]
        (layer,), values = model.layers, model.types() @ model.layers[0].value.mT
        for head, weights in enumerate(everything.tolist()):
            if (values[head] == values[head][:1]).all():
                continue
            atoms = {}
            logits = y[0] @ layer.key_query[head] @ y[0, -1]
            back = torch.arange(len(word)).flip(0)
            inside = back <= layer.locality
            logits[inside] += layer.local[head][back[inside]]
            for place, weight in enumerate(weights):
                back = len(word) - 1 - place
                atom = ("near", back) if back <= pair.locality else ("far", kinds[place])
                atoms[atom] = atoms.get(atom, 0.0) + weight
            result.append((atoms, float(logits.max()), alike(model, head, kinds[-1])))
    return result


def alike(model, head, query):
    """Whether, for this query, every two keys that it could meet with one logit have the same value."""
    (layer,), types = model.layers, model.types()
    logits = types @ layer.key_query[head] @ types[query]
    values = (types @ layer.value[head].mT).tolist()
    met = [(float(logit), values[kind]) for kind, logit in enumerate(logits)]
    met.append((float(logits[query] + layer.local[head][0]), values[query]))
    for back in range(1, layer.locality + 1):
        for token in range(model.vocabulary):
            kind = token * model.period + (query - back) % model.period
            met.append((float(logits[kind] + layer.local[head][back]), values[kind]))
    return all(one[1] == other[1] for one, other in itertools.combinations(met, 2) if one[0] == other[0])


def apart(one, other):
    (p, logit, same), (q, other_logit, _) = one, other
    if logit != other_logit:
        return 1.0
    return 0.0 if same else sum(abs(p.get(atom, 0.0) - q.get(atom, 0.0)) for atom in {*p, *q}) / 2


@settings(max_examples=60)
@given(RECIPES, RECIPES, st.integers(3, 9), st.sampled_from([0.1, 0.25, 0.45]), st.integers(0, 10**6))
def test_the_integer_program_is_optimal(one, two, length, eta, seed):
    """Among all strings with the suffix and residue of x, the shortest with attention within eta."""
    localities = [min(one["localities"][0], 1)], [min(two["localities"][0], 1)]
    f, g = integer_pair(
        {**one, "vocabulary": 2, "localities": localities[0]}, {**two, "localities": localities[1]}
    )
    pair = Pair.of(f, g)
    word = torch.randint(2, (length,), generator=torch.Generator().manual_seed(seed))
    summary = summarize(word, 2, pair.period, pair.locality)
    counts = [int(count) for count in summary.counts.flatten().tolist()]
    program = fewest_positions(
        counts,
        attended(pair, summary),
        period=pair.period,
        eta=Fraction(eta),
        least=0,
        known=min(sum(counts[r :: pair.period]) for r in range(pair.period)),
        time_limit=20,
    )
    near = min(length, pair.locality + 1)
    target, best = hard_attentions(pair, word), length
    for size in range(length - pair.period, near - 1, -pair.period):
        for front in words(2, size - near) if size > near else [torch.zeros(0, dtype=torch.long)]:
            shorter = torch.cat([front, word[length - near :]])
            moved = [apart(p, q) for p, q in zip(target, hard_attentions(pair, shorter), strict=True)]
            if max(moved, default=0.0) <= eta + 1e-12:
                best = size
                break
    assert program.counts is not None
    assert program.optimal
    assert near + sum(program.counts) == best


@settings(max_examples=40)
@given(RECIPES, RECIPES, st.sampled_from(["spread", "starved"]), st.integers(0, 10**6))
def test_never_longer_than_the_construction(one, two, style, seed):
    f, g = integer_pair(one, two)
    pair = Pair.of(f, g)
    summary = draw_summary(pair, 10**6 + seed % 5, style, seed)
    construction = lw.simulate(f, g, summary, 0.1)
    started = time.monotonic()
    found = lw.simulate(f, g, summary, 0.1, "shortest", time_limit=1.0)
    assert time.monotonic() - started < 5
    assert found.length <= construction.length
    assert max(found.error_f, found.error_g) <= 0.1
    assert found.details.get("no_shorter_with_this_attention_than", 1) <= construction.length


def test_the_lower_bound_for_proportions_is_met():
    """Prop B2: sets {a, b_1..b_k-1} and everything, with n_b = 1 << n_a << n_c: (k - 1)/eta^2 positions."""
    from lengthwise.simulation.attended import Attended

    for eta, k in ((Fraction(1, 10), 2), (Fraction(1, 10), 4), (Fraction(1, 20), 2)):
        counts = [10**8] + [1] * (k - 1) + [10**15]
        kinds = frozenset(range(k)), frozenset(range(k + 1))
        heads = [Attended(far, 0, frozenset()) for far in kinds]
        free = {"period": 1, "eta": eta, "least": 0, "known": 10**7, "time_limit": 20}
        program = fewest_positions(counts, heads, **free)
        assert program.counts is not None
        for far in kinds:
            assert total_variation(counts, program.counts, far, 0) <= eta
        if min(program.counts) >= 1:  # with the same support, as the proposition asks
            assert sum(program.counts) >= (k - 1) / eta**2
