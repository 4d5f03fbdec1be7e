"""Subsampling with long runs: a short string z made of stretches of a long one, x, for two-layer models.

Inside a run, windows and residues are those of x. What is left to keep are the averages that the second layer
takes: over the whole string, of functions of window, residue and prefix histogram. Three methods:

- "markov": a two-state Markov chain decides what is kept, as in the paper;
- "stratified": one block of x, drawn at random, in each of m equal parts;
- "balanced": blocks chosen without chance, so that histograms and averages agree at every prefix.

Axes: T position, M block, K type (token, residue), d quantity that is balanced.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from lengthwise.limit.complexity import TwoLayerConstants, balanced_dimension, two_layer_constants
from lengthwise.limit.margins import regimes
from lengthwise.sequences import check_length, types
from lengthwise.simulation.first_layer import check_infinite, first_layer
from lengthwise.simulation.lemmas import balanced_error
from lengthwise.simulation.pair import Pair
from lengthwise.simulation.result import Simulation
from lengthwise.simulation.rounding import prefix_rounding

RunMethod = Literal["markov", "stratified", "balanced"]

MOST_BLOCKS = 100_000
"""Unless a run length is given, no string is cut into more blocks to balance than this."""

GRID = 1.5
"""Ratio of the lengths that are tried one after the other."""


@dataclass(frozen=True)
class Blocks:
    """A string of ``length`` T cut into ``count`` M blocks of ``run_length`` l, and an ``end`` run of
    e = 2 tau + 1 + ((T - 2 tau - 1) mod l) tokens, between 2 tau + 1 and 2 tau + l.

    If l is a multiple of the period, chosen blocks and the end run keep their residues in z.
    """

    length: int
    run_length: int
    count: int
    end: int

    @staticmethod
    def of(length: int, run_length: int, locality: int) -> "Blocks":
        """The blocks of a string of at least 2 tau + 1 tokens."""
        tail = 2 * locality + 1
        assert length >= tail
        end = tail + (length - tail) % run_length
        return Blocks(length, run_length, (length - end) // run_length, end)

    def positions(self, chosen: Integer[np.ndarray, "m"]) -> Int[np.ndarray, "n"]:
        """The positions (from 0) of x that make up z: the chosen blocks in order, then the end run."""
        start = np.sort(chosen).astype(np.int64) * self.run_length
        inside = (start[:, None] + np.arange(self.run_length)).reshape(-1)
        return np.concatenate([inside, np.arange(self.length - self.end, self.length)])

    def means(self, values: Float[np.ndarray, "T q"]) -> Float[np.ndarray, "M q"]:
        """The mean over each block."""
        inside = values[: self.count * self.run_length]
        return inside.reshape(self.count, self.run_length, -1).mean(1)

    def histograms(
        self, tokens: Integer[Tensor, "T"], vocabulary: int, period: int
    ) -> Float[np.ndarray, "M K"]:
        """The histogram of types of each block."""
        kinds = vocabulary * period
        inside = types(tokens[: self.count * self.run_length], period).cpu().numpy()
        inside = inside + kinds * (np.arange(len(inside)) // self.run_length)
        counts = np.bincount(inside, minlength=self.count * kinds).reshape(self.count, kinds)
        return counts / self.run_length


def markov_positions(
    length: int,
    period: int,
    locality: int,
    kept: float,
    run_length: float,
    random: np.random.Generator,
) -> Int[np.ndarray, "n"]:
    """The positions (from 0) of x that a stationary two-state Markov chain keeps, and the last 2 tau + 1.

    A step of the chain is a unit of ``period`` positions, so that residues are kept; runs have mean length
    ``run_length``, and ``kept`` positions are kept in the mean before the end. Where hardly anything is
    dropped, runs are as long as the chain needs to exist.
    """
    tail = 2 * locality + 1
    end = tail + (length - tail) % period
    units = (length - end) // period
    share = min(kept / max(1, length - end), 1.0)
    if share >= 1:
        return np.arange(length)
    run = max(run_length / period, 1.0, share / (1 - share))
    stop, go = 1 / run, share / (1 - share) / run
    ends, covered = [], 0
    keeps = random.random() < share
    while covered < units and share > 0:
        count = int(1.2 * (units - covered) * share / run) + 16
        pair = [random.geometric(stop, count), random.geometric(go, count)]
        runs = np.stack(pair if keeps else pair[::-1], 1).reshape(-1)
        ends.append(covered + np.cumsum(runs))
        covered = int(ends[-1][-1])
    edges = np.concatenate([[0], *ends]).clip(max=units)
    kept_runs = np.arange(len(edges) - 1) % 2 == (0 if keeps else 1)
    chosen = np.flatnonzero(np.repeat(kept_runs, np.diff(edges)))
    inside = (chosen[:, None] * period + np.arange(period)).reshape(-1)
    return np.concatenate([inside, np.arange(length - end, length)])


def stratified_blocks(count: int, runs: int, random: np.random.Generator) -> Int[np.ndarray, "m"]:
    """One of ``count`` blocks (from 0) in each of ``runs`` strata: beta_k = ceil(U_k), U_k uniform on
    ((k - 1) M/m, k M/m]. A block that lies in two strata can be drawn twice.
    """
    uniform = (np.arange(runs) + 1 - random.random(runs)) * (count / runs)
    return np.clip(np.ceil(uniform).astype(np.int64) - 1, 0, count - 1)


def balanced_blocks(
    histograms: Float[np.ndarray, "M K"], means: Float[np.ndarray, "M q"], period: int, runs: int
) -> Int[np.ndarray, "m"]:
    """Exactly ``runs`` of the M blocks (from 0), balanced in every prefix by ``prefix_rounding``.

    The vectors have d = D (S - 1) + 1 + q entries: histograms of types without those of token 0, which the
    others determine, a constant, and the means.
    """
    vectors = np.concatenate([np.ones((len(means), 1)), histograms[:, period:], means], 1)
    chosen = np.flatnonzero(prefix_rounding(vectors, runs))
    assert len(chosen) == runs
    return chosen


def far_quantities(pair: Pair, tokens: Integer[Tensor, "T"]) -> Float[np.ndarray, "T q"]:
    """What the far part of the second layer averages, at every position of x: for every head of either model
    that is not position-dominated, w_t and w_t V (ybar_t - ybar_1), w_t = exp(logit of ybar_t for ybar_T),
    where ybar is the limit of the stream after the first layer. Values are written in a basis of the range of
    V, and weights relative to the largest.
    """
    columns = [np.zeros((len(tokens), 0))]
    for f in pair.models:
        if "token" not in regimes(f)[1] and "balanced" not in regimes(f)[1]:
            continue
        limit_Td = first_layer(f, tokens).limit
        second = f.layers[1]
        for key_query, value, regime in zip(second.key_query, second.value, regimes(f)[1], strict=True):
            if regime == "position":
                continue
            logits_T = limit_Td @ (key_query @ limit_Td[-1])
            weights_T1 = torch.exp(logits_T - logits_T.max()).unsqueeze(-1)
            rank = int(torch.linalg.matrix_rank(value))
            range_rd = torch.linalg.svd(value).U[:, :rank].mT
            values_Tr = (limit_Td - limit_Td[0]) @ (range_rd @ value).mT
            columns.append(torch.cat([weights_T1, weights_T1 * values_Tr], 1).cpu().numpy())
    return np.concatenate(columns, 1)


def default_run(method: RunMethod, length: int, whole: int, period: int, locality: int) -> int:
    """A run length for subsamples of a given length of a string of length ``whole``: a multiple of the
    period, at least tau + 1, and about length^(1/3), where the terms of Lemmas S and M are of one order;
    to balance, length^(1/2) for the same reason, or a single period if tau = 0, where windows never differ
    (more if there were more than ``MOST_BLOCKS`` blocks).
    """
    if method == "balanced":
        target = math.isqrt(length) if locality else 1
        target = max(target, -(-whole // MOST_BLOCKS))
    else:
        target = round(length ** (1 / 3))
    least = max(locality + 1, target, 2 * period if method == "markov" else 1)
    return period * -(-least // period)


def simulate_runs(
    pair: Pair,
    tokens: Tensor | Sequence[int],
    tolerance: float,
    method: RunMethod,
    *,
    length: int | None = None,
    run: int | None = None,
    draws: int = 8,
    seed: int = 0,
) -> Simulation:
    """A short string z, made of runs of x, on which two two-layer models in infinite precision give nearly
    the same outputs as on x.

    - ``length``: z has at most this length, whatever its errors; if not given, z is the shortest on a grid of
      lengths (ratio 1.5) whose measured errors are within ``tolerance``, or x itself if no shorter one is;
    - ``run``: the run length (mean run length for "markov"), a multiple of the period and at least tau + 1,
      by default ``default_run``;
    - ``draws``: of how many draws the random methods take the best.

    The method "balanced" comes with the guarantee of Theorem E (``balanced_error``). The lemmas on the random
    methods are about averages, not outputs: no guarantee is given.
    """
    check_infinite(*pair.models)
    if method not in get_args(RunMethod):
        raise ValueError(f"method must be 'markov', 'stratified' or 'balanced', got {method!r}")
    if not tolerance >= 0:
        raise ValueError(f"tolerance must be at least 0, got {tolerance}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    if length is not None:
        check_length(length)
    least = max(pair.locality + 1, 2 * pair.period if method == "markov" else 1)
    if run is not None and (run < least or run % pair.period):
        raise ValueError(f"run must be a multiple of {pair.period} and at least {least}, got {run}")
    sampler = _Sampler(pair, pair.word(tokens), method, run, draws, seed)
    if length is not None:
        return sampler.best(length)
    for candidate in sampler.grid():
        found = sampler.best(candidate)
        if max(found.error_f, found.error_g) <= tolerance:
            return found
    return sampler.whole()


class _Sampler:
    """Subsamples of one string by one method, and what they are worth."""

    def __init__(
        self, pair: Pair, tokens: Tensor, method: RunMethod, run: int | None, draws: int, seed: int
    ) -> None:
        self.pair, self.tokens, self.run = pair, tokens, run
        self.method: RunMethod = method
        self.draws = 1 if method == "balanced" else draws
        self.random = np.random.default_rng(seed)
        self.outputs = [f(tokens) for f in pair.models]
        self.quantities = far_quantities(pair, tokens) if method == "balanced" else None

    def grid(self) -> list[int]:
        """The lengths to try, from one that holds an end run of any residue up to that of x, excluded."""
        shortest = 2 * self.pair.locality + self.pair.period
        steps = range(math.ceil(math.log(max(1, len(self.tokens) / shortest), GRID)) + 1)
        return [n for n in (math.ceil(shortest * GRID**step) for step in steps) if n < len(self.tokens)]

    def best(self, length: int) -> Simulation:
        """The best draw of at most this length."""
        if length >= len(self.tokens):
            return self.whole()
        run = self.run or default_run(
            self.method, length, len(self.tokens), self.pair.period, self.pair.locality
        )
        drawn = [self._draw(length, run) for _ in range(self.draws)]
        errors = self._errors([self._subsample(draw) for draw in drawn])
        best = int(np.argmin(errors.max(1)))
        return self._simulation(drawn[best], errors[best])

    def whole(self) -> Simulation:
        """X itself."""
        details = {"run": len(self.tokens), "blocks": 1, "draws": 0}
        return Simulation(
            self.tokens, len(self.tokens), 0.0, 0.0, self.method, 0.0, 0.0, "always", None, details
        )

    def _draw(self, length: int, run: int) -> "_Draw":
        """A z of at most ``length``."""
        pair, whole = self.pair, len(self.tokens)
        if self.method == "markov":
            return self._markov(length, run)
        if whole < 2 * pair.locality + 1 + run:
            return self._suffix(length, run)
        blocks = Blocks.of(whole, run, pair.locality)
        runs = (length - blocks.end) // run
        if runs < 1:
            return self._suffix(length, run)
        if self.method == "stratified":
            chosen = stratified_blocks(blocks.count, runs, self.random)
        else:
            assert self.quantities is not None
            histograms = blocks.histograms(self.tokens, pair.vocabulary, pair.period)
            chosen = balanced_blocks(histograms, blocks.means(self.quantities), pair.period, runs)
        return _Draw(blocks.positions(chosen), run, runs)

    def _markov(self, length: int, run: int) -> "_Draw":
        period, tail = self.pair.period, 2 * self.pair.locality + 1
        end = tail + (len(self.tokens) - tail) % period
        kept = length - end - math.sqrt(run * max(0, length - end))  # so that few draws are too long
        if kept < period:
            return self._suffix(length, run)
        positions = markov_positions(len(self.tokens), period, self.pair.locality, kept, run, self.random)
        excess = max(0, len(positions) - length)
        positions = positions[period * -(-excess // period) :]
        return _Draw(positions, run, 1 + int((np.diff(positions) > 1).sum()))

    def _suffix(self, length: int, run: int) -> "_Draw":
        """Where no run fits: the longest suffix with the residue of x, or with any if it has none."""
        whole = len(self.tokens)
        kept = length - (length - whole) % self.pair.period
        return _Draw(np.arange(whole - (kept if kept > 0 else length), whole), run, 0)

    def _subsample(self, draw: "_Draw") -> Tensor:
        return self.tokens[torch.from_numpy(draw.positions).to(self.tokens.device)]

    def _errors(self, strings: list[Tensor]) -> Float[np.ndarray, "Z 2"]:
        """As ``pair.distance`` for each string and model; outputs on strings of one length in one batch."""
        errors = np.empty((len(strings), 2))
        for length in {len(z) for z in strings}:
            same = [index for index, z in enumerate(strings) if len(z) == length]
            batch = torch.stack([strings[index] for index in same])
            for column, (f, output) in enumerate(zip(self.pair.models, self.outputs, strict=True)):
                apart = torch.linalg.vector_norm(f(batch) - output, dim=-1)
                errors[same, column] = apart.cpu().numpy()
        return errors

    def _simulation(self, draw: "_Draw", errors: Float[np.ndarray, "2"]) -> Simulation:
        z = self._subsample(draw)
        promised = self._promised(draw) if self.method == "balanced" and draw.runs > 0 else (None, None)
        details: dict[str, Any] = {"run": draw.run, "blocks": draw.runs, "draws": self.draws}
        return Simulation(
            tokens=z,
            length=len(z),
            error_f=float(errors[0]),
            error_g=float(errors[1]),
            method=self.method,
            guaranteed_f=promised[0],
            guaranteed_g=promised[1],
            guarantee="none" if promised == (None, None) else "always",
            summary=None,
            details=details,
        )

    def _promised(self, draw: "_Draw") -> tuple[float | None, float | None]:
        """What Theorem E says of f and of g, where it says something."""
        locality = self.pair.locality
        assert len(self.tokens) > draw.runs * draw.run + 2 * locality + draw.run
        cf, cg = (two_layer_constants(f) for f in self.pair.models)
        dimension = balanced_dimension(cf, cg)

        def finite(c: TwoLayerConstants) -> float | None:
            bound = balanced_error(
                c, dimension=dimension, locality=locality, runs=draw.runs, run_length=draw.run
            )
            return bound if math.isfinite(bound) else None

        return finite(cf), finite(cg)


@dataclass(frozen=True)
class _Draw:
    """Positions of x that make up a z, the run length and the number of runs."""

    positions: Integer[np.ndarray, "n"]
    run: int
    runs: int
