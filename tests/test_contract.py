"""The names that users type, and what they give: scripts rely on these."""

import json

import pytest
import torch

import lengthwise as lw
from lengthwise.cli import COMMANDS, main


def test_limit_transformers():
    f = lw.constructions.simple_task(omega=8, knots=16)
    assert isinstance(f, lw.LimitTransformer)
    assert isinstance(f.layers[0], lw.LimitLayer)
    tokens = torch.tensor([0, 1, 1])
    assert f(tokens).shape == (1,)
    assert f(tokens.repeat(2, 1)).shape == (2, 1)
    torch.testing.assert_close(f.evaluate(tokens, method="fast"), f.evaluate(tokens, method="reference"))
    assert (f.vocabulary, f.period, f.locality) == (2, 1, 0)
    for measure in ("logit_margin", "hardmax_length", "complexity"):
        assert getattr(f, measure)() >= 0
    head = lw.constructions.k_gram(k=1, vocabulary=2, tolerance=0.1)
    assert head.positional_margin() > 0
    assert len(head.regimes()) == 2
    assert lw.constructions.mod_p(period=3, residue=1).period == 3


def test_simulation_and_bounds():
    f, g = lw.constructions.simple_task(2, 8), lw.constructions.simple_task(1, 8)
    found = lw.simulate(f, g, torch.tensor([0, 1] * 500), 0.1, method="counts")
    assert found.length == len(found.tokens)
    assert max(found.error_f, found.error_g) <= 0.1
    assert found.method == "counts"
    bound = lw.bound(f, g, 0.5)
    assert bound.certified
    assert isinstance(bound.length, int)
    assert isinstance(bound.theorem, str)
    assert bound.terms
    assert lw.divergence(f, g, 5)


def test_crasp():
    p = lw.crasp.parse('accept = # "1" > # "0"')
    assert p("011")
    assert p([p.alphabet.index("1")])
    assert (p.depth, p.period, p.locality) == (1, 1, 0)
    assert p.size > 0
    with pytest.raises(ValueError, match="line 1, column"):
        lw.crasp.parse("accept = &&")
    assert isinstance(lw.crasp.compile(p), lw.LimitTransformer)
    same = lw.crasp.equivalent(p, lw.crasp.parse('accept = # "1" >= # "0" + 1'))
    assert same.answer is True
    other = lw.crasp.equivalent(p, lw.crasp.parse('accept = # "1" >= # "0"'))
    assert other.answer is False
    assert p(other.witness) != lw.crasp.parse('accept = # "1" >= # "0"')(other.witness)
    assert isinstance(other.method, str)
    assert lw.crasp.decide("(ab)*", alphabet="ab", acceptance="eos", positional=False).answer is True


def test_runs_of_both_families():
    limit = lw.Run(lw.task("simple", omega=8), lw.LimitModel(), lw.Training(length=8))
    decoder = lw.Run(lw.task("copy-unique"), lw.DecoderModel(), lw.DecoderTraining())
    assert (limit.evaluation, decoder.evaluation) == (lw.Evaluation(), lw.DecoderEvaluation())
    assert callable(lw.train)
    assert callable(lw.plateaus)
    assert callable(lw.accuracies)
    assert all(hasattr(lw, name) for name in lw.__all__)


def test_commands(capsys):
    names = "demo advise bound simulate train sweep reproduce crasp tasks"
    assert set(names.split()) <= set(COMMANDS)
    assert main(["tasks", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert all({"name", "knobs", "period", "locality", "in_crasp"} <= set(entry) for entry in listed)
    found = {entry["name"] for entry in listed}
    assert {"simple", "modp", "kgram", "binary-majority", "copy-unique", "tomita-4", "dyck-12"} <= found
    assert main(["crasp", "decide", "(ab)*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] is True
