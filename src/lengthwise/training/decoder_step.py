"""The gradients of decoders: of a batch at once on a GPU, piece by piece on a CPU."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.models.decoder import DecoderEnsemble
from lengthwise.models.decoder_forward import Weights
from lengthwise.tasks import Examples, PredictionTask
from lengthwise.training.decoder_data import Reading, reading
from lengthwise.training.pieces import Group, Share, examples_of, logits_of, shares, whole
from lengthwise.training.workers import Workers


class Backward:
    """Adds every model's gradient, of loss and regulariser, to the stack's and returns the losses.

    On a GPU, which works at once on all there is, shapes stay the same, so that a step can be replayed.
    """

    def __init__(
        self, ensemble: DecoderEnsemble, task: PredictionTask, regulariser: float, workers: Workers
    ) -> None:
        self._ensemble, self._task, self._regulariser = ensemble, task, regulariser
        self._workers = workers

    def __call__(self, *parts: Tensor) -> Float[Tensor, "M"]:
        """Of one batch, given as the parts of a ``Reading``; on a CPU, its streams go by falling length."""
        batch = reading(*parts)
        weights = self._ensemble.weights()
        cut = [whole(batch)]
        if not batch.scored.is_cuda:
            cut = shares(batch, self._ensemble, self._workers.size)
        if len(cut) == len(cut[0].pieces) == 1:
            (models, (groups,)) = cut[0]
            loss_M = self._loss(weights, batch, models, groups, examples_of(batch, models, groups))
            loss_M.sum().backward()
        else:
            loss_M = self._in_pieces(weights, batch, cut)
        if self._regulariser:
            (self._regulariser * self._ensemble.position_logits()).sum().backward()
        return loss_M.detach()

    def _loss(
        self, weights: Weights, batch: Reading, models: slice, groups: Sequence[Group], examples: Examples
    ) -> Float[Tensor, "M"]:
        """The mean over all scored places of a piece."""
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

        def work(share: Share) -> Tensor:
            models, leaves, losses = share.models, {}, []
            for name, weight in weights.items():
                leaves[name] = weight.detach()[models].requires_grad_()
                leaves[name].grad = gradients[name][models]
            for groups in share.pieces:
                examples = examples_of(batch, models, groups)
                part_M = examples.scored.sum((1, 2)) / scored_M[models]
                loss_M = self._loss(leaves, batch, models, groups, examples) * part_M
                loss_M.sum().backward()
                losses.append(loss_M.detach())
            return torch.stack(losses).sum(0)

        loss_M = torch.cat(self._workers.map(work, cut))
        made = [name for name, weight in weights.items() if not weight.is_leaf]
        torch.autograd.backward([weights[name] for name in made], [gradients[name] for name in made])
        return loss_M
