"""Many words at once: the values of the definitions at every node and position, whatever the tiles."""

import itertools

import pytest
import torch
from crasp_programs import RECIPES, WORDS, build_program, plain_values, with_tiles, word_for
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.crasp import batch
from lengthwise.crasp.batch import NO_LETTER, accepts, node_values, outputs
from lengthwise.crasp.batch_plan import Ever, Sum, plan
from lengthwise.crasp.batch_tile import Tiles
from lengthwise.crasp.builder import TRUE, Formula, Q, count, exists, forall, ind, mod
from lengthwise.crasp.nodes import Bool, Count
from lengthwise.crasp.program import Program

pytestmark = pytest.mark.usefixtures("one_thread")

A, B = Q("a"), Q("b")
HEIGHT = count(A) - count(B)
DYCK = Program("ab", accept=(count(HEIGHT < 0) == 0) & (HEIGHT == 0))
NEAR = Program("ab", accept=count(A & (count(A, at=[1, 2]) == 2)) == 0)


def read_by(program, words):
    """Words of any lengths as rows for ``node_values``, with no letter behind their ends."""
    longest = max(map(len, words)) + (program.mode == "eos")
    tokens = torch.full((len(words), longest), NO_LETTER)
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word, dtype=torch.long)
    return tokens


@settings(max_examples=150)
@given(RECIPES, st.lists(WORDS, min_size=1, max_size=4), st.sampled_from([1, 7, 64, 2**16]))
def test_every_node_at_every_position(recipe, words, tile):
    program = build_program(recipe)
    words = [word_for(program, word) for word in words]
    found = with_tiles(tile, node_values, program.nodes, read_by(program, words), program.alphabet)
    for index, word in enumerate(words):
        for node, row in plain_values(program, word).items():
            assert found[node][index, : len(row)].tolist() == row


@settings(max_examples=25)
@given(RECIPES, st.lists(st.integers(0, 2), min_size=1, max_size=24), st.booleans())
def test_every_size_of_a_tile(recipe, word, alone):
    """Sums are taken apart if all counts are wanted, together if only the answer is."""
    program = build_program(recipe)
    word = word_for(program, word)
    table = plain_values(program, word)
    wanted = [program.root()] if alone else program.nodes
    tokens = read_by(program, [word])
    for tile in range(1, tokens.shape[1] + 2):
        found = with_tiles(tile, node_values, wanted, tokens, program.alphabet)
        assert {node: row[0].tolist() for node, row in found.items()} == {n: table[n] for n in wanted}


@settings(max_examples=100)
@given(RECIPES, st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([1, 3, 16, 200, 2**16]))
def test_words_of_several_lengths_at_once(recipe, words, tile):
    """What is behind the end of a word does not matter."""
    program = build_program(recipe)
    words = [word_for(program, word) for word in words]
    width, letters = max(map(len, words)) + 2, len(program.alphabet)
    tokens = torch.arange(len(words) * width).reshape(len(words), width) % letters
    for row, word in zip(tokens, words, strict=True):
        row[: len(word)] = torch.tensor(word, dtype=torch.long)
    lengths = torch.tensor([len(word) for word in words])
    found = with_tiles(tile, accepts, program, tokens, lengths)
    for word, answer in zip(words, found.tolist(), strict=True):
        if word or program.mode == "eos":
            assert answer == plain_values(program, word)[program.root()][-1]
        else:
            assert answer == program.empty


@settings(max_examples=60)
@given(RECIPES, WORDS, st.sampled_from([1, 5, 17, 2**16]))
def test_one_node_alone_has_the_value_that_it_has_among_all(recipe, word, tile):
    """What is shared, summed together or left out depends on what is asked for; the values do not."""
    program = build_program(recipe)
    word = word_for(program, word)
    tokens, table = read_by(program, [word]), plain_values(program, word)
    for node in (program.nodes[-1], program.nodes[len(program.nodes) // 2]):
        found = with_tiles(tile, node_values, [node], tokens, program.alphabet)[node]
        assert found.dtype == (torch.bool if isinstance(node, Bool) else torch.long)
        assert found[0].tolist() == table[node]


@settings(max_examples=40)
@given(RECIPES, st.lists(st.integers(0, 2), min_size=1, max_size=24), st.integers(1, 12))
def test_answers_at_the_end_alone(recipe, word, tile):
    """Tiles before the last are passed over; what every formula needs of them is carried on."""
    program = build_program(recipe)
    word = word_for(program, word)
    for node, row in plain_values(program, word).items():
        if isinstance(node, Bool):
            alone = Program(program.alphabet, accept=Formula(node), mode=program.mode)
            assert with_tiles(tile, accepts, alone, torch.tensor([word])).tolist() == [row[-1]]


def test_passing_over_tiles():
    window = count(A, at=[1, 2, 5])
    formulas = [
        window >= 2,
        window - 2 * count(B, at=[3]) >= 0,
        exists(A & (window >= 1)),
        count(B & (window >= 1)) >= 2,
        (count(A, at=[4]) >= 1) & exists(B) & ~mod(3, 0),
        count(A, at=[2]) + ind(exists(B)) - count(A) >= 0,
    ]
    tokens = torch.tensor(list(itertools.product((0, 1), repeat=7))[::7])
    for mode, formula in itertools.product(("last", "eos"), formulas):
        program = Program("ab", accept=formula, mode=mode)
        expected = [plain_values(program, word)[program.root()][-1] for word in tokens.tolist()]
        assert len(set(expected)) == 2
        for tile in (1, 2, 3, 6, 7):
            assert with_tiles(tile, accepts, program, tokens).tolist() == expected


def test_languages_on_all_short_words():
    third = Program("ab", accept=(count(A & mod(3, 2)) == 0), mode="eos")
    for length in range(11):
        words = list(itertools.product((0, 1), repeat=length))
        tokens = torch.tensor(words, dtype=torch.long).reshape(len(words), length)
        for word, balanced, near, free in zip(
            words, *(accepts(p, tokens).tolist() for p in (DYCK, NEAR, third)), strict=True
        ):
            heights = list(itertools.accumulate(1 - 2 * letter for letter in word))
            assert balanced == (not word or (min(heights) >= 0 and heights[-1] == 0))
            assert near == ("000" not in "".join(map(str, word)))
            assert free == (0 not in word[1::3])


def test_predictions_at_every_position():
    p = Program("ab", next={"a": count(A) <= count(B), "b": A})
    found = outputs(p, torch.tensor([[0, 1, 1, 0]]))
    assert found["a"].tolist() == [[False, True, True, True]]
    assert found["b"].tolist() == [[True, False, False, True]]
    with pytest.raises(ValueError, match="predicts symbols"):
        accepts(p, torch.tensor([[0]]))


@settings(max_examples=60)
@given(st.lists(st.integers(0, 25), min_size=1, max_size=3), st.integers(1, 12), st.integers(1, 30))
def test_what_happened_once_has_happened_for_ever(places, tile, width):
    """Words with an a at one place each, at and around the ends of tiles."""
    words = [[int(at != place) for at in range(width)] for place in places]
    tokens = torch.tensor(words)
    formulas = {"some": exists(A), "all": forall(B), "one": count(A) == 1, "again": exists(prev_some())}
    found = with_tiles(tile, outputs, Program("ab", next=formulas), tokens)
    for index, place in enumerate(places):
        seen = [at >= place for at in range(width)]
        assert found["some"][index].tolist() == found["one"][index].tolist() == seen
        assert found["all"][index].tolist() == [not held for held in seen]
        assert found["again"][index].tolist() == [at > place for at in range(width)]


def prev_some():
    """There was an a before this position."""
    return count(A, strict=True) >= 1


def running_totals(steps):
    return [
        item
        for item, _ in steps
        if (isinstance(item, Sum) and item.steps)
        or isinstance(item, Ever)
        or (isinstance(item, Count) and item.distances is None)
    ]


@settings(max_examples=100)
@given(RECIPES, st.integers(1, 80), st.sampled_from([1, 20, 100]), st.booleans())
def test_plans_compute_no_more_than_needed(recipe, width, tile, alone):
    """Every value is there when it is read, is dropped once nobody needs it, and no more running totals are
    computed than there are counts.
    """
    program = build_program(recipe)
    wanted = [program.root()] if alone else list(program.nodes)
    found = plan(wanted, width, tile)
    assert bool(found.carrying) <= (width > tile)
    for steps, left in ((found.steps, set(wanted)), (found.carrying, set())):
        alive = set()
        for item, done in steps:
            assert item not in alive
            alive.add(item)
            assert alive.issuperset(done)
            alive.difference_update(done)
        assert alive == left
        counted = [n for n in program.nodes if isinstance(n, Count) and n.distances is None]
        assert len(running_totals(steps)) <= len(counted)


def test_comparisons_share_sums_and_what_is_known_is_not_computed():
    steps = plan([DYCK.root()], 100, 1000).steps
    # One for the height, which three comparisons share, and whether it was ever low.
    assert len(running_totals(steps)) == 2
    width = 20
    window = count(A, at=[1, 2, 40])
    d = HEIGHT
    sure = {
        "many": count(A) + count(B) <= 2 * width,
        "few": d >= -width,
        "window": window <= 2,
        "both": (window <= 2) & (d >= -width),
        "either": (d > width) | (window <= 2) | A,
        "not": ~(d > width),
        "counted": count(d >= -width) >= 0,
    }
    for one in sure.values():
        for known, answer in ((one, True), (~one, False)):
            assert plan([known.node], width, 1000).known[known.node] is answer
    unsure = {
        "last": count(A) >= width,
        "first": d <= -width,
        "rest": (d >= -width) & A & (window <= 2),
        "none": (d > width) | B,
        "all": count(d >= -width) >= width,
    }
    assert all(one.node not in plan([one.node], width, 1000).known for one in unsure.values())
    program = Program("ab", next=sure | {f"no {name}": ~one for name, one in sure.items()} | unsure)
    rows = [[0] * width, [1] * width, [0, 1, 1, 0, 1] * 4]
    found = outputs(program, torch.tensor(rows))
    for index, row in enumerate(rows):
        table = plain_values(program, row)
        for name, one in program.next.items():
            assert found[name][index].tolist() == table[one.node]
            assert name not in sure or found[name].all()


def test_no_tile_is_larger_than_it_should_be(monkeypatch):
    monkeypatch.setattr(batch, "TILE", 1000)
    sizes = {"read": [], "pass_over": []}

    def watch(name, original):
        def seen(self, letters, start):
            sizes[name].append(tuple(letters.shape))
            return original(self, letters, start)

        monkeypatch.setattr(Tiles, name, seen)

    watch("read", Tiles.read)
    watch("pass_over", Tiles.pass_over)
    bounded = Program("ab", accept=(count((HEIGHT < 0) | (HEIGHT > 1)) == 0) & (HEIGHT == 0))
    tokens = torch.arange(10**5).remainder(2).unsqueeze(0)
    # Values are needed on the last tile alone.
    assert accepts(bounded, tokens).tolist() == [True]
    assert sizes == {"read": [(1, 1000)], "pass_over": [(1, 1000)] * 99}
    assert accepts(bounded, tokens, torch.tensor([50_000])).tolist() == [True]
    assert (len(sizes["read"]), len(sizes["pass_over"])) == (2, 99 + 49)
    tokens[0, 77_777] = 0
    assert accepts(bounded, tokens).tolist() == [False]
    sizes["read"].clear()
    assert accepts(bounded, tokens[:, :90_000].reshape(-1, 30)).sum() == 2999
    assert sum(rows for rows, _ in sizes["read"]) == 3000
    assert max(rows * columns for rows, columns in sizes["read"]) <= 1000
    monkeypatch.setattr(batch, "TILE", 2**17)
    for threads, tiles in ((1, [10**5]), (2, [batch.UNSPLIT] * 3 + [10**5 - 3 * batch.UNSPLIT])):
        torch.set_num_threads(threads)
        for seen in sizes.values():
            seen.clear()
        assert accepts(bounded, tokens).tolist() == [False]
        assert [columns for _, columns in (*sizes["pass_over"], *sizes["read"])] == tiles
    torch.set_num_threads(1)


def test_no_words_and_no_letters():
    for mode in ("last", "eos"):
        empty = Program(
            "ab", accept=(count(A) == 0) & (count(TRUE) <= 1) & mod(2, int(mode == "eos")), mode=mode
        )
        for words, width in ((0, 0), (0, 5), (3, 0)):
            tokens = torch.zeros(words, width, dtype=torch.long)
            assert accepts(empty, tokens).tolist() == [True] * words
            assert accepts(empty, tokens, torch.zeros(words, dtype=torch.long)).tolist() == [True] * words
            for node, row in node_values(empty.nodes, tokens, "ab").items():
                assert row.shape == (words, width)
                assert row.dtype == (torch.bool if isinstance(node, Bool) else torch.long)
    never = Program("ab", accept=count(A) == 0, accepts_empty=False)
    tokens = torch.tensor([[1, 1], [1, 1], [0, 0]])
    assert accepts(never, tokens, torch.tensor([0, 2, 0])).tolist() == [False, True, False]


@pytest.mark.parametrize("program", [DYCK, NEAR, Program("ab", accept=A & mod(2, 1), mode="last")])
def test_tokens_of_any_kind_and_layout(program):
    tokens = torch.randint(2, (7, 9), generator=torch.Generator().manual_seed(0))
    expected = accepts(program, tokens).tolist()
    assert [bool(plain_values(program, row)[program.root()][-1]) for row in tokens.tolist()] == expected
    for kind in (torch.uint8, torch.int8, torch.int16, torch.int32):
        lengths = torch.full((7,), 9, dtype=kind)
        assert accepts(program, tokens.to(kind), lengths).tolist() == expected
    turned, spread = tokens.mT.contiguous().mT, tokens.repeat_interleave(2, 1)[:, ::2]
    for other in (turned, spread, spread.to(torch.int8)[:, :]):
        assert accepts(program, other).tolist() == expected
    for row, answer in zip(tokens, expected, strict=True):
        assert accepts(program, row.to(torch.int8).expand(4, 9)).tolist() == [answer] * 4


def test_mistakes():
    p = Program("ab", accept=count(A) >= 1)
    for wrong, message in (
        (torch.tensor([[0, 2]]), "tokens must be between 0 and 1, got 0 to 2"),
        (torch.tensor([[-1]]), "tokens must be between 0 and 1"),
        (torch.full((1, 3), 7, dtype=torch.uint32), "tokens must be between 0 and 1, got 7 to 7"),
    ):
        for mode in ("last", "eos"):
            with pytest.raises(ValueError, match=message):
                accepts(Program("ab", accept=p.accept, mode=mode), wrong)
    with pytest.raises(ValueError, match="tokens must be between -1 and 1, got 0 to 256"):
        node_values(p.nodes, torch.tensor([[0, 256]]), "ab")
    for wrong in ([3], [-1]):
        with pytest.raises(ValueError, match="lengths must be between 0 and the number of tokens, 2"):
            accepts(p, torch.tensor([[0, 1]]), torch.tensor(wrong))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@settings(max_examples=40)
@given(RECIPES, st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([1, 16, 2**24]))
def test_words_on_a_gpu(recipe, words, tile):
    program = build_program(recipe)
    tokens = read_by(program, [word_for(program, word) for word in words])
    letters, lengths = tokens.clamp(min=0), torch.tensor([len(word) for word in words])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "TILE_ON_GPU", tile)
        values = node_values(program.nodes, tokens.cuda(), program.alphabet)
        answers = accepts(program, letters.cuda(), lengths)
    assert answers.is_cuda
    assert torch.equal(answers.cpu(), accepts(program, letters, lengths))
    for node, row in node_values(program.nodes, tokens, program.alphabet).items():
        assert torch.equal(values[node].cpu(), row)
