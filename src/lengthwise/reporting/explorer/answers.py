"""A bound, a simulation and the attention of a setting, as plain data with words beside the numbers."""

import itertools
import math
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lengthwise.bounds import Bound, bound
from lengthwise.limit import Finite, LimitTransformer
from lengthwise.limit.reference import attentions
from lengthwise.reporting.bounds import WORSE, bound_sentence, certified_words, length_words
from lengthwise.reporting.explorer.controls import TOLERANCE, Setting, exact, setting_of, tokens_of
from lengthwise.reporting.inspection import number
from lengthwise.sequences import counts
from lengthwise.simulation import Simulation, simulate

CURVE_POINTS = 13
"""The curve of a bound has so many tolerances."""

LONGEST_MAP = 40
"""Up to this length the attention of every position is told, not only that of the last."""

ROUNDING = 1e-12
"""Outputs of sizes below this are not told from 0."""

LARGEST = "1e300"
"""Beyond this an approximate number is only said to be larger."""

ERRORS = "parts of the error at this length"
LENGTHS = "parts of the length, of which the largest decides"


def bound_answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """The certified length, what it is made of, the paper's order beside it, and both over all tolerances."""
    setting = setting_of(given)
    found = bound(setting.model, None, setting.tolerance)
    return {
        "length": found.to_json()["length"],
        "length_label": "certified length" if found.certified else "no certified length",
        "length_words": certified_words(found),
        "log10_length": _log10(found.length),
        "certified": found.certified,
        "theorem": found.theorem,
        "sentence": bound_sentence(found, alone=True),
        "terms_are": ERRORS if found.theorem == "Theorem E" else LENGTHS,
        "terms": _terms(found),
        "growth": [
            {"if": WORSE[name], "times": f"{_times(value)} times"} for name, value in found.growth.items()
        ],
        "parameters": [
            {"name": name.replace("_", " "), "words": _told(value)}
            for name, value in found.parameters.items()
            if not name.endswith("_g")
        ],
        "order": _order(found.order),
        "brief": f"certified length {length_words(found.length)}"
        if found.certified
        else "no certified length",
        "command": _command("bound", setting),
        "tolerance": setting.tolerance,
        "curve": list(_curve(replace(setting, tolerance=TOLERANCE.default))),
    }


def _command(verb: str, setting: Setting, *more: str) -> str:
    """The line that gives the same answer in a terminal."""
    return shlex.join(["lengthwise", verb, setting.name, "--tolerance", exact(setting.tolerance), *more])


def _terms(found: Bound) -> list[dict[str, str]]:
    say = number if found.theorem == "Theorem E" else length_words
    return [{"name": name, "words": say(value)} for name, value in found.terms.items()]


def _order(found: Bound | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "label": "of this order (paper)",
        "theorem": found.theorem.removesuffix(" (order)"),
        "length_words": length_words(found.length) if found.length < math.inf else f"more than {LARGEST}",
        "log10_length": _log10(found.length),
        "words": found.words,
    }


@lru_cache(maxsize=32)
def _curve(setting: Setting) -> tuple[dict[str, float | None], ...]:
    """The bound of a model at tolerances over the whole range, whatever the setting's own."""
    low, high = math.log10(TOLERANCE.low), math.log10(TOLERANCE.high)
    tolerances = [10 ** (low + (high - low) * step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS)]
    found = [bound(setting.model, None, tolerance) for tolerance in tolerances]
    return tuple(
        {
            "tolerance": one.tolerance,
            "log10_length": _log10(one.length),
            "log10_order": None if one.order is None else _log10(one.order.length),
        }
        for one in found
    )


def simulation_answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """The input x and a short z on which the model does the same, their histograms, and the error."""
    setting = setting_of(given)
    f = setting.model
    x = torch.tensor(tokens_of(given, f.vocabulary))
    found = simulate(f, f, x, setting.tolerance)
    assert found.tokens is not None
    shorter = found.length < len(x)
    brief = (
        f"{_tokens(len(x))} imitated by {length_words(found.length)}"
        if shorter
        else "no shorter string was found"
    )
    sure = found.guaranteed_f is not None and found.guaranteed_f <= setting.tolerance
    promise = (
        f", and the theorem guarantees at most {number(found.guaranteed_f)}"
        if sure
        else ", as measured; the theorem guarantees that only for longer strings"
    )
    sentence = (
        f"{_tokens(len(x))} are imitated by {length_words(found.length)}: the outputs differ by "
        f"{number(found.error_f)}{promise}."
        if shorter
        else f"No string shorter than {'these ' * (len(x) > 1)}{_tokens(len(x))} was found at this "
        "tolerance, so z is x; there may be one for a longer input or a larger tolerance."
    )
    types = [(token, residue) for token in range(f.vocabulary) for residue in range(f.period)]
    return {
        "sentence": sentence,
        "method": found.method,
        "guarantee": found.guarantee,
        "error": found.error_f,
        "error_words": number(found.error_f),
        "guaranteed": _finite(found.guaranteed_f),
        "guaranteed_words": _promise(found),
        "brief": brief,
        "command": _command("simulate", setting, "--input", _typed(given["input"], x.tolist())),
        "tolerance": setting.tolerance,
        "types_are": "token" if f.period == 1 else "token, residue",
        "types": [f"{token}" if f.period == 1 else f"{token}, {residue}" for token, residue in types],
        "x": _string(f, x),
        "z": _string(f, found.tokens),
    }


def _promise(found: Simulation) -> str:
    if found.guaranteed_f is None or found.guarantee == "none":
        return "nothing at this length"
    return f"at most {number(found.guaranteed_f)}" + " on average" * (found.guarantee == "on average")


def _tokens(count: int) -> str:
    return f"{length_words(count)} token{'s' if count > 1 else ''}"


def _typed(text: str, tokens: list[int]) -> str:
    """An input for the command line: the powers as they were typed, or all digits."""
    return " ".join(text.replace(",", " ").split()) if "^" in text else "".join(map(str, tokens))


def _string(f: LimitTransformer, tokens: Tensor) -> dict[str, Any]:
    seen = counts(tokens, f.vocabulary, f.period).flatten().tolist()
    output = f(tokens).tolist()
    return {
        "length": len(tokens),
        "text": _written(tokens.tolist()),
        "counts": seen,
        "shares": [count / len(tokens) for count in seen],
        "output": output,
        "output_words": _outputs(output),
    }


def _written(tokens: list[int]) -> str:
    """The tokens as digits, or as powers of digits where that is shorter."""
    runs = [(token, len(list(group))) for token, group in itertools.groupby(tokens)]
    powers = " ".join(f"{token}^{count}" if count > 1 else f"{token}" for token, count in runs)
    plain = "".join(map(str, tokens))
    return powers if len(powers) < len(plain) else plain


def attention_answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of the last position of every head, and those of all positions of a short input."""
    setting = setting_of(given)
    f = setting.model
    tokens = torch.tensor(tokens_of(given, f.vocabulary))
    layers = attentions(f, tokens.unsqueeze(0))
    regimes = None if isinstance(f.precision, Finite) else f.regimes()
    heads = [
        {
            "layer": index + 1,
            "head": head + 1,
            "regime": None if regimes is None else regimes[index][head],
            "weights": weights[0, head, -1].tolist(),
            "map": weights[0, head].tolist() if len(tokens) <= LONGEST_MAP else None,
        }
        for index, weights in enumerate(layers)
        for head in range(weights.shape[1])
    ]
    count = f"{len(heads)} head{'s' if len(heads) > 1 else ''}"
    output = _outputs(f(tokens).tolist())
    sentence = f"{count}, seen from the last of {_tokens(len(tokens))}; the output is {output}."
    return {
        "sentence": sentence,
        "brief": f"output {output}",
        "tokens": tokens.tolist(),
        "period": f.period,
        "longest_map": LONGEST_MAP,
        "heads": heads,
    }


def _outputs(values: list[float]) -> str:
    """The outputs, where what is left of rounding is 0."""
    return ", ".join(number(value if abs(value) >= ROUNDING else 0.0) for value in values)


def _times(value: float) -> str:
    return number(value) if math.isfinite(value) else f"more than {LARGEST}"


def _log10(length: int | float) -> float | None:
    return None if length == math.inf else math.log10(length)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _told(value: Any) -> str:
    return length_words(value) if isinstance(value, int) else number(value)
