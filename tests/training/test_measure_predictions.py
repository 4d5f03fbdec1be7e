"""Any model on tasks of decoders: accuracy by hand, oracles, and models that others make."""

import math
import re
from pathlib import Path

import pytest
import torch
from torch.nn.functional import one_hot

import lengthwise as lw
from lengthwise.experiments.predictions import predict, program_model
from lengthwise.models import DecoderModel
from lengthwise.models.positions import SCHEMES
from lengthwise.training import (
    Decoder,
    DecoderEvaluation,
    DecoderTraining,
    measure_predictions,
    train_decoders,
)
from lengthwise.training.randomness import generator

pytestmark = pytest.mark.usefixtures("one_thread")


def oracle(task, wrong=lambda tokens: torch.zeros(len(tokens), dtype=torch.bool)):
    """A model that is sure of what comes next, or of something else in the streams that are picked out."""

    def logits(tokens):
        end = torch.full((len(tokens), 1), task.vocabulary - 1)
        sure = 50.0 * one_hot(torch.cat([tokens[:, 1:], end], 1), task.classes).double()
        return torch.where(wrong(tokens).view(-1, 1, 1), sure.roll(1, -1), sure)

    return logits


@pytest.mark.parametrize("name", ["binary-majority", "copy-repeat", "sort", "addition", "parity"])
def test_an_oracle_is_right_at_every_length(name):
    task = lw.task(name)
    curve = lw.evaluate(oracle(task), task, [4, 9, (10, 20), (40, 61)], sequences=40)
    assert curve.accuracies == (1.0,) * 4
    assert curve.accuracy_errors == (0.0,) * 4
    assert max(curve.losses) < 1e-15
    assert (curve.shortest, curve.test_lengths) == ((4, 9, 10, 40), (4, 9, 20, 61))
    assert lw.effective_length(curve, 1e-9) == 61


@pytest.mark.parametrize("name", ["dyck-3", "aa-star", "tomita-4"])
def test_programs_are_oracles_of_languages(name):
    task = lw.task(name)
    model = program_model(predict(task, "learned").program, task)
    curve = lw.evaluate(model, task, [(0, 8), 30, 150], sequences=50)
    assert curve.accuracies == (1.0, 1.0, 1.0)
    # Logits of 1 and -1 for each class: the same loss at every place.
    assert curve.losses == pytest.approx([task.classes * math.log1p(math.exp(-1))] * 3)
    assert max(curve.errors) < 1e-12


@pytest.mark.parametrize("sequences", [2, 37, 150])
def test_one_wrong_place_of_one_sequence_is_one_wrong_sequence(sequences):
    task, seen = lw.task("copy-unique"), []

    def first(tokens):
        seen.append(len(tokens))
        return torch.arange(len(tokens)) == (0 if len(seen) == 1 else -1)

    curve = lw.evaluate(oracle(task, first), task, [(3, 30)], sequences=sequences)
    assert sum(seen) == sequences
    share = 1 - 1 / sequences
    assert curve.accuracies == (pytest.approx(1 - 1 / sequences, abs=1e-15),)
    assert curve.accuracy_errors[0] == pytest.approx(math.sqrt(share * (1 - share) / (sequences - 1)))


class Counts(torch.nn.Module):
    """A small causal model: a map of the counts of tokens so far, and of the present token."""

    def __init__(self, vocabulary, classes, seed=0):
        super().__init__()
        self.vocabulary = vocabulary
        self.out = torch.nn.Linear(2 * vocabulary, classes, dtype=torch.float64)
        for part in self.out.parameters():
            torch.nn.init.normal_(part, generator=torch.Generator().manual_seed(seed))

    def forward(self, tokens):
        assert not self.training
        one = one_hot(tokens, self.vocabulary).double()
        counts = one.cumsum(1) / torch.arange(1, tokens.shape[1] + 1).unsqueeze(1)
        return self.out(torch.cat([one, counts], -1))


@pytest.mark.parametrize("name", ["binary-majority", "copy-repeat", "tomita-1", "dyck-2"])
def test_accuracy_and_loss_are_those_of_plain_loops(name, monkeypatch):
    task = lw.task(name)
    model, sequences = Counts(task.vocabulary, task.classes), 40
    monkeypatch.setattr(measure_predictions, "TOKENS_AT_ONCE", 50)  # several calls for each length
    bins = [(2, 4), (6, 9)]
    curve = lw.evaluate(model, task, bins, sequences=sequences, seed=3)
    model.eval()
    for at, (low, high) in enumerate(bins):
        examples = task.sample(sequences, low, high, generator(3, f"evaluation {low}-{high}"))
        rights, losses, scored, often = [], [], [], torch.zeros(task.classes, dtype=torch.float64)
        for row in range(sequences):
            logits, good, lost = model(examples.tokens[row : row + 1])[0].detach(), True, 0.0
            places = examples.places[row][examples.scored[row]].tolist()
            for place, target in zip(places, examples.target[row], strict=False):
                if task.kind == "token":
                    good &= int(logits[place].argmax()) == int(target)
                    lost -= float(logits[place].log_softmax(-1)[target])
                    often[target] += 1
                else:
                    good &= bool(((logits[place] > 0) == target).all())
                    signed = torch.where(target, logits[place], -logits[place])
                    lost -= float(torch.nn.functional.logsigmoid(signed).sum())
                    often += target
            rights.append(good)
            losses.append(lost)
            scored.append(len(places))
        assert curve.accuracies[at] == sum(rights) / sequences
        mean = sum(losses) / sum(scored)
        assert curve.losses[at] == pytest.approx(mean)
        parts = torch.tensor(losses) - mean * torch.tensor(scored)
        error = float(parts.double().std()) / (sum(scored) / sequences) / sequences**0.5
        assert curve.errors[at] == pytest.approx(error, rel=1e-4)
        share = often / sum(scored)
        entropy = torch.distributions.Categorical(probs=share).entropy()
        if task.kind == "set":
            entropy = torch.distributions.Bernoulli(probs=share).entropy().sum()
        assert curve.baselines[at] == pytest.approx(float(entropy), abs=1e-6)
    assert model.train().training


def test_frames_and_lengths():
    task = lw.task("aa-star")
    curve = lw.evaluate(Counts(2, 2), task, [0, 2, (3, 9), 10, 12, 14], sequences=5)
    rows = curve.frame()
    assert list(rows.columns) == [
        *("shortest", "test_length", "loss", "loss_error", "baseline", "accuracy", "accuracy_error")
    ]
    assert rows["shortest"].tolist() == [0, 2, 3, 10, 12, 14]
    assert rows["test_length"].tolist() == [0, 2, 9, 10, 12, 14]
    assert rows["loss_error"][0] == 0  # there is one empty word
    assert curve.plateau.value == pytest.approx(sum(curve.losses[2:]) / 4)


def test_the_same_sequences_for_every_model_however_they_are_called(monkeypatch):
    task, seen = lw.task("copy-repeat"), []

    def watched(tokens):
        seen.append([tuple(row.tolist()) for row in tokens])
        return torch.zeros(*tokens.shape, task.classes)

    found = []
    for most in (2**14, 40, 1):
        monkeypatch.setattr(measure_predictions, "TOKENS_AT_ONCE", most)
        seen.clear()
        lw.evaluate(watched, task, [(5, 9)], sequences=30)
        assert all(len(call) == 1 or len(call) * len(call[0]) <= most for call in seen)
        assert all(len({len(row) for row in call}) == 1 for call in seen)
        assert all(row[0] == 0 and 4 not in row for call in seen for row in call)  # never padded
        found.append(sorted(row for call in seen for row in call))
    assert found[0] == found[1] == found[2]
    monkeypatch.setattr(measure_predictions, "DRAWN_AT_ONCE", 100)
    assert len(lw.evaluate(watched, task, [(5, 9)], sequences=30).losses) == 1


@pytest.mark.parametrize(("positions", "spare"), [*((scheme, 0) for scheme in SCHEMES), ("learned", 5)])
@pytest.mark.parametrize("name", ["binary-majority", "dyck-2"])
def test_a_trained_decoder_is_measured_as_its_training_did(name, positions, spare):
    task, bins = lw.task(name), [(2, 8), (9, 16)]
    model = DecoderModel(layers=2, heads=2, width=8, positions=positions, spare_positions=spare)
    evaluation = DecoderEvaluation(ends=(8, 16), sequences=200, every=30, seed=5)
    training = DecoderTraining(length=8, steps=30, batch=16, learning_rate=1e-2)
    (result,) = train_decoders(model, task, [training], evaluation)
    decoder = Decoder(model, task, result.weights)
    bins[0] = (task.shortest, 8)
    curve = lw.evaluate(decoder, task, bins, sequences=200, seed=5)
    if positions == "randomised":  # other positions are drawn
        assert curve.accuracies == pytest.approx(result.accuracy[-1].tolist(), abs=0.15)
        again = lw.evaluate(Decoder(model, task, result.weights), task, bins, sequences=200, seed=5)
        assert again == curve
    else:
        assert curve.accuracies == tuple(result.accuracy[-1].tolist())
    if positions == "learned":
        longest = task.stream_length(16) + spare
        assert decoder(torch.zeros(1, longest, dtype=torch.int64)).shape[:2] == (1, longest)
        with pytest.raises(ValueError, match=f"the model has {longest} positions, but streams of"):
            lw.evaluate(decoder, task, [40], sequences=2)
        with pytest.raises(
            ValueError, match=f"the decoder has {longest} positions, got streams of 40 tokens"
        ):
            decoder(torch.zeros(1, 40, dtype=torch.int64))
    elif positions != "randomised":
        assert lw.evaluate(decoder, task, [40], sequences=2).losses[0] < math.inf


def test_mistakes():
    task, odd = lw.task("copy-repeat"), lw.task("aa-star")
    for model, chosen, lengths, message in (
        (oracle(task), task, [], "must be given and increase, got \\[\\]"),
        (oracle(task), task, [3, 3], "must be given and increase"),
        (oracle(task), task, [(1, 5), (5, 9)], "must be given and increase"),
        (oracle(task), task, [(5, 1)], "the shortest length 5 is larger than the longest, 1"),
        (oracle(task), task, [(1, 2, 3)], "a bin of lengths is its shortest and its longest one"),
        (oracle(task), task, [2.5], "must be a whole number"),
        (oracle(task), task, [0], "copy, repeated has no inputs of length 0"),
        (oracle(odd), odd, [3], r"\(aa\)\* has no inputs of length 3"),
        (lambda tokens: [0.0], task, [5], "must return a tensor, or an object with one as logits, got list"),
        (lambda tokens: torch.zeros(3, 1), task, [5], r"shape \(3, 1\), expected \(4, 12, 5\)"),
        (lambda tokens: torch.zeros(*tokens.shape, 3), task, [5], "logits of 3 tokens, copy, repeated has 5"),
        (lambda tokens: torch.zeros(*tokens.shape, 9), odd, [4], r"its 2 classes, .*, got 9"),
    ):
        with pytest.raises(ValueError, match=message):
            lw.evaluate(model, chosen, lengths, sequences=4)
    with pytest.raises(ValueError, match="sequences must be a whole number of at least 2, got 1"):
        lw.evaluate(oracle(task), task, [5], sequences=1)


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def gpt2(transformers, task, more=0, positions=64):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=task.vocabulary + more,
        n_positions=positions,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=task.vocabulary - 1,
    )
    return transformers.GPT2LMHeadModel(config)


def test_a_language_model_of_hugging_face(transformers):
    task = lw.task("binary-majority")
    model = gpt2(transformers, task)
    curve = lw.evaluate(model, task, [(1, 9), 20], sequences=50, seed=2)
    assert model.training
    model.eval()
    for at, (low, high) in enumerate(((1, 9), (20, 20))):
        examples = task.sample(50, low, high, generator(2, f"evaluation {low}-{high}"))
        with torch.no_grad():
            logits = model(examples.tokens).logits.double()  # padded, which a causal model does not see
        places = examples.places.unsqueeze(-1).expand(-1, -1, task.classes)
        logits = logits.gather(1, places)
        assert curve.accuracies[at] == float(task.right(logits, examples).double().mean())
        assert curve.losses[at] == pytest.approx(float(task.loss(logits, examples).mean()), rel=1e-5)


def test_logits_of_other_tokens_are_left_out(transformers):
    task = lw.task("binary-majority")
    model = gpt2(transformers, task, more=100).eval()
    curve = lw.evaluate(model, task, [12], sequences=30)
    cut = lw.evaluate(lambda tokens: model(tokens).logits[..., : task.vocabulary], task, [12], sequences=30)
    assert curve == cut
    assert curve.losses[0] == pytest.approx(math.log(task.vocabulary), rel=0.2)


def test_what_a_language_model_cannot_read_is_said_before_it_fails(transformers):
    task = lw.task("copy-unique")  # streams of 2 n + 2 tokens
    model = gpt2(transformers, task)
    assert len(lw.evaluate(model, task, [31], sequences=2).losses) == 1
    for lengths in ([32], [5, (6, 40)]):
        with pytest.raises(
            ValueError, match="the model has 64 positions, but streams of copy, unique have up to"
        ):
            lw.evaluate(model, task, lengths, sequences=2)
    small = gpt2(transformers, lw.task("binary-majority"))
    with pytest.raises(ValueError, match="the model has 5 tokens, copy, unique has 153"):
        lw.evaluate(small, task, [5], sequences=2)
    with pytest.raises(
        ValueError, match="asks for sets: the model must return one logit for each of its 3 classes"
    ):
        lw.evaluate(small, lw.task("dyck-2"), [4], sequences=2)


def test_positions_that_go_on_are_no_limit(transformers):
    task = lw.task("copy-repeat")
    config = transformers.LlamaConfig(
        vocab_size=task.vocabulary,
        max_position_embeddings=16,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    curve = lw.evaluate(transformers.LlamaForCausalLM(config), task, [20], sequences=4)
    assert curve.losses[0] < math.inf


def test_what_the_page_on_suites_says_of_programs_and_models(transformers):
    page = (Path(__file__).parents[2] / "docs/suites.md").read_text()
    codes = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict = {"torch": torch, "lw": lw}
    for chosen in ("lw.predict(", "GPT2Config"):
        (code,) = [code for code in codes if chosen in code]
        exec(code, names)
    no, yes = names["no"], names["yes"]
    assert (no.answer, yes.answer) == (False, True)
    assert no.witness.strings(c=1, N=2) == ("1011010", "10110100")
    assert yes.right(yes.task.sample(64, 1, 150, generator(0, "any"))).all()
    assert names["positions"] == 102
    assert names["curve"].accuracies == (0.0, 0.0, 0.0)
    assert ", ".join(names["curve"].frame().columns) in page
