"""The gradients of decoders: of a batch at once on a GPU, piece by piece on a CPU."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.models.decoder_forward import Weights
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.training.decoder_config import Rounding
from lengthwise.training.decoder_data import Group, Reading, reading
from lengthwise.training.pieces import Share, examples_of, grouped, logits_of, shares, whole
from lengthwise.training.workers import Workers


class Backward:
    """Adds every model's gradient, of loss and regulariser, to the stack's and returns the losses.

    On a GPU, which works at once on all there is, shapes stay the same, so that a step can be replayed.
    """

    def __init__(
        self,
        ensemble: DecoderEnsemble,
        task: PredictionTask,
        regulariser: float,
        workers: Workers,
        rounding: Rounding = "none",
    ) -> None:
        self._ensemble, self._task, self._regulariser = ensemble, task, regulariser
        self._workers, self._rounding = workers, rounding

    def __call__(self, *parts: Tensor, groups: tuple[Group, ...] | None = None) -> Float[Tensor, "M"]:
        """Of one batch, given as the parts of a ``Reading`` with streams by falling length; on a GPU in the
        ``groups``, if there are any.
        """
        batch = reading(*parts)
        weights = self._ensemble.weights()
        if not batch.scored.is_cuda:
            cut = shares(batch, self._ensemble, self._workers.size)
        else:
            cut = [whole(batch) if groups is None else grouped(batch, groups)]
        if len(cut) == len(cut[0].pieces) == 1:
            (models, (all_groups,)) = cut[0]
            examples = examples_of(batch, models, all_groups)
            loss_M = self._loss(weights, batch, models, all_groups, examples)
            self._ensemble.stack.add_gradients(loss_M.sum())
        else:
            loss_M = self._in_pieces(weights, batch, cut)
        if self._regulariser:
            self._ensemble.stack.add_gradients((self._regulariser * self._ensemble.position_logits()).sum())
        return loss_M.detach()

    def _loss(
        self, weights: Weights, batch: Reading, models: slice, groups: Sequence[Group], examples: Examples
    ) -> Float[Tensor, "M"]:
        """The mean over all scored places of a piece."""
        half = self._rounding == "bfloat16" and batch.scored.is_cuda and not self._ensemble.counted
        with torch.autocast("cuda", torch.bfloat16, enabled=half, cache_enabled=False):
            logits = logits_of(self._ensemble, weights, batch, models, groups)
        return self._task.loss(logits.unsqueeze(2), examples).mean(-1)

    def _in_pieces(
        self, weights: dict[str, Tensor], batch: Reading, cut: Sequence[Share]
    ) -> Float[Tensor, "M"]:
        """Gradients of the weights add up over the pieces, and go on from there to the parameters once."""
        gradients = {}
        for name, weight in weights.items():
            gradients[name] = weight.grad if weight.is_leaf else torch.zeros_like(weight)
        scored_M = batch.scored.sum((1, 2)).to(self._ensemble.stack.values.dtype)

        def work(share: Share) -> tuple[Tensor, dict[str, Tensor]]:
            models, leaves, losses = share.models, {}, []
            for name, weight in weights.items():
                leaves[name] = weight.detach()[models].requires_grad_()
                if share is first[models.start]:
                    leaves[name].grad = gradients[name][models]
            for groups in share.pieces:
                examples = examples_of(batch, models, groups)
                part_M = examples.scored.sum((1, 2)) / scored_M[models]
                loss_M = self._loss(leaves, batch, models, groups, examples) * part_M
                loss_M.sum().backward()
                losses.append(loss_M.detach())
            found = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
            return torch.stack(losses).sum(0), found

        # The first share of some models adds to their gradients; those of others come on top, in turn.
        first = {share.models.start: share for share in reversed(cut)}
        loss_M = torch.zeros_like(scored_M)
        for share, (lost, found) in zip(cut, self._workers.map(work, cut), strict=True):
            loss_M[share.models] += lost
            if share is not first[share.models.start]:
                for name, gradient in found.items():
                    gradients[name][share.models] += gradient
        made = [name for name, weight in weights.items() if not weight.is_leaf]
        torch.autograd.backward([weights[name] for name in made], [gradients[name] for name in made])
        return loss_M
