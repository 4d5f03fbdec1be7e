"""Predictions: every program does its task, every no has a reason, and few differ from the published ones."""

import json
from dataclasses import replace
from itertools import pairwise, permutations, product

import pytest
import torch

import lengthwise as lw
from lengthwise.crasp import Family, parse
from lengthwise.experiments.predictions import COVERED, finite, predict, predictions, program_model
from lengthwise.models.positions import SCHEMES
from lengthwise.tasks import ALGORITHMIC, FORMAL
from lengthwise.tasks._prediction import END

ALL = [*ALGORITHMIC, *FORMAL]
BINS = (0, 50, 100, 150)

BOTH, LEARNED, NEITHER = (True, True), (False, True), (False, False)
PUBLISHED = {
    "binary-majority": BOTH,
    "binary-majority-interleaved": LEARNED,
    "majority": BOTH,
    "sort": BOTH,
    "copy-unique": LEARNED,
    "copy-repeat": NEITHER,
    "parity": NEITHER,
    "addition": NEITHER,
    "dyck-2": BOTH,
    "dyck-3": BOTH,
    "dyck-4": BOTH,
    "dyck-12": BOTH,
    "tomita-1": BOTH,
    "tomita-2": BOTH,
    "aa-bb-cc-dd-ee": BOTH,
    "tomita-4": LEARNED,
    "tomita-7": BOTH,
    "ab-d-bc": BOTH,
    "012-02": NEITHER,
    "aa-star": LEARNED,
    "aaaa-star": LEARNED,
    "abab-star": LEARNED,
    "tomita-3": NEITHER,
    "tomita-5": NEITHER,
    "tomita-6": NEITHER,
    "parity-language": NEITHER,
}
"""Whether Huang et al. (ICLR 2025) found a program: without positions (NoPE), and with them (APE)."""

DIFFERENT = {
    ("copy-unique", "none"): (False, None),  # 150 tokens, none twice: finitely many inputs. The library has
    # a program without positions besides, of a size linear in the number of tokens.
    ("copy-unique", "learned"): (True, None),  # likewise finite
    ("sort", "none"): (True, None),  # likewise finite
    ("sort", "learned"): (True, None),  # likewise finite
}
"""Where ours is another answer: the published one and ours."""


pytestmark = pytest.mark.usefixtures("one_thread")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("place", "positions"), list(enumerate(COVERED)))
def test_predictions_are_the_published_ones_but_for_tasks_with_finitely_many_inputs(place, positions):
    found = {one.task.name: one.answer for one in predictions(schemes=[positions])}
    assert set(found) == set(PUBLISHED) == set(ALL)
    differ = {
        (name, positions): (PUBLISHED[name][place], answer)
        for name, answer in found.items()
        if PUBLISHED[name][place] != answer
    }
    assert differ == {key: value for key, value in DIFFERENT.items() if key[1] == positions}
    assert all(finite(lw.task(name)) for name, _ in differ)


@pytest.mark.parametrize("name", ALL)
def test_a_yes_has_a_program_of_its_class_and_a_no_has_a_reason(name):
    for positions, fragment in COVERED.items():
        one = predict(lw.task(name), positions)
        assert one.fragment == fragment
        assert one.answer in (one.member, None)
        if one.member:
            assert one.source == "program"
            assert positions == "learned" or (one.program.period, one.program.locality) == (1, 0)
            assert positions == "learned" or one.program.fragment != COVERED["learned"]
        else:
            assert one.program is None
            assert one.source in ("decision", "proof")
            assert one.why == f"no program does it ({one.method})"
            assert ("decided" if one.source == "decision" else "proved: ") in one.method
            # With positions the reason is a monoid, which is named by no words.
            assert (one.witness is not None) == (one.source == "decision" and positions == "none")
    assert one.member or not predict(lw.task(name), "none").member


def formulas(program):
    return {symbol: made.node for symbol, made in program.next.items()}


@pytest.mark.parametrize("name", ALL)
def test_programs_do_the_task_at_all_lengths(name):
    without, one = (predict(lw.task(name), positions) for positions in COVERED)
    if not one.member:
        with pytest.raises(ValueError, match="is known that does"):
            one.right(one.task.sample(2, 0, 9, generator()))
        return
    for seed, (end, high) in enumerate(pairwise(BINS)):
        assert one.right(one.task.sample(50, end + 1, high, generator(seed))).all()
    assert not without.member or formulas(without.program) == formulas(one.program)


def inputs(task):
    """All inputs up to some length, as tuples of letters."""
    if name_of(task) in ("sort", "copy-unique"):
        return [word for n in range(1, task.tokens + 1) for word in permutations(task.letters, n)]
    longest = {2: 10, 3: 6, 4: 6}[len(task.letters)]
    return [w for n in task.lengths(0, longest) for w in product(task.letters, repeat=n)]


def name_of(task):
    return type(task).name


def streams(task, words):
    """The examples of some inputs."""
    longest = max(map(len, words))
    number = {letter: index for index, letter in enumerate(task.letters, start=task.kind == "token")}
    rows = [[*(number[letter] for letter in word), *[0] * (longest - len(word))] for word in words]
    sizes = torch.tensor([len(word) for word in words])
    return task.examples_of(torch.tensor(rows).reshape(len(words), longest), sizes)


@pytest.mark.parametrize(
    "task",
    [
        lw.task("binary-majority"),
        lw.task("majority", size=4),
        lw.task("binary-majority-interleaved"),
        lw.task("copy-unique", tokens=5),
        lw.task("sort", tokens=5),
    ],
    ids=name_of,
)
def test_programs_answer_all_short_inputs(task):
    words = inputs(task)
    assert len(words) > 300
    one, examples = predict(task, "learned"), streams(task, words)
    assert one.right(examples).all()
    # Every symbol is asked for somewhere.
    for symbol in one.program.next:
        others = {other: made for other, made in one.program.next.items() if other != symbol}
        silent = replace(one, program=replace(one.program, next=others))
        assert not silent.right(examples).all()


@pytest.mark.parametrize("name", FORMAL)
def test_programs_tell_what_may_follow_in_all_short_words(name):
    one = predict(lw.task(name), "learned")
    if not one.member:
        return
    dfa, beginnings, words = one.task.automaton, [""], []
    for _ in range(9):
        words += [word for word in beginnings if dfa.accepts(word)]
        longer = (word + letter for word in beginnings for letter in one.task.letters)
        beginnings = [word for word in longer if dfa.after(word) in dfa.live]
    assert len(words) >= 3
    assert one.right(streams(one.task, words)).all()


def test_a_wrong_program_is_found_wrong():
    two, three = (predict(lw.task(f"dyck-{n}"), "none") for n in (2, 3))
    examples = three.task.sample(200, 6, 20, generator())
    deep = (torch.where(examples.tokens == 1, 1, 0) - torch.where(examples.tokens == 2, 1, 0)).cumsum(1).amax(
        1
    ) > 1
    logits = program_model(two.program, three.task)(examples.tokens)
    wrong = ~three.task.right(logits, examples)  # every place is scored, in order
    assert torch.equal(wrong, deep)
    with pytest.raises(ValueError, match="the program does not read 'c', a symbol of"):
        program_model(two.program, lw.task("aa-bb-cc-dd-ee"))


@pytest.mark.parametrize(
    "name", [name for name in ALL if isinstance(predict(lw.task(name), "none").witness, Family)]
)
def test_words_that_no_program_tells_apart_are_prefixes_with_different_targets(name):
    task, witness = lw.task(name), predict(lw.task(name), "none").witness
    for c, N in (1, 1), (2, 2), (3, 4):
        pair = witness.strings(c, N)
        examples = streams(task, pair)
        last = examples.scored.sum(1) - (2 if task.kind == "token" else 1)  # the answer comes before the end
        one, other = examples.target[torch.arange(2), last]
        assert not torch.equal(one, other)
        if task.kind == "set":
            assert one.any()
            assert other.any()


@pytest.mark.parametrize("name", ALL)
def test_no_theorem_covers_other_schemes(name):
    without = predict(lw.task(name), "none")
    for positions in set(SCHEMES) - set(COVERED):
        one = predict(lw.task(name), positions)
        assert one.answer is None
        assert (one.member, one.fragment, one.program) == (without.member, "C-RASP", without.program)
        exists = "does it" if one.member else "does not exist"
        assert finite(one.task) or one.why == (
            f"no theorem covers these positions; a program without positions {exists}"
        )


def test_languages_of_ones_own():
    def answers(expression):
        return [
            predict(lw.task("language", expression=expression), one).answer for one in ("none", "learned")
        ]

    assert answers("(ab)*c") == [True, True]
    # Without aa: the last letter tells what may follow, though the language is not in C-RASP.
    assert answers("(b|ab)*a?") == [True, True]
    assert lw.crasp.decide("(b|ab)*a?").answer is False
    assert answers("(aab)*") == [True, True]
    assert answers("(aabaab)*") == [False, True]
    assert answers("(a|b|e)*be*") == [False, False]
    for expression in ("abc|ab?", "a", "()|bb"):
        assert answers(expression) == [None, None]
        one = predict(lw.task("language", expression=expression, letters="abc"), "none")
        assert "finitely many inputs" in one.why
        assert one.member
        assert one.right(one.task.sample(20, 0, 5, generator())).all()


def test_tasks_of_which_nothing_is_known_and_mistakes():
    class Mine(lw.tasks.algorithmic.CopyRepeatTask):
        pass

    one = predict(Mine(), "none")
    assert (one.answer, one.member, one.source) == (None, None, "unknown")
    with pytest.raises(ValueError, match=r"positions must be one of none, learned, .*, got 'absolute'"):
        predict(lw.task("parity"), "absolute")
    with pytest.raises(ValueError, match="SimpleTask is no task of decoders"):
        predict(lw.task("simple"), "none")


def test_plain_data():
    found = json.loads(json.dumps([one.to_json() for one in predictions([lw.task("dyck-3")])]))
    assert [one["positions"] for one in found] == list(SCHEMES)
    assert all(one["task"] == "dyck-3" for one in found)
    assert [one["answer"] for one in found] == [True, True, *[None] * 5]
    program = parse(found[0]["program"]["text"])
    assert set(program.next) == {"a", "b", END}
    assert (program.depth, found[0]["program"]["depth"]) == (1, 1)
    (no,) = predictions([lw.task("tomita-4")], ["none"])
    assert no.to_json()["witness"] == {"x": "", "loops": ("1", "01"), "w1": "", "w2": "0", "v": "0"}
