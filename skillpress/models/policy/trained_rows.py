"""Rows of the embeddings that are trained while all other rows stay as they are.

Low-rank changes leave the embeddings out, but a word that became a token of its own (``domain_tokens.py``)
needs them: its rows begin at the mean of its pieces' rows and no pretraining has seen them. So the rows of
such tokens are parameters of their own, [rows, hidden], one matrix for the input embeddings and one for
untied output embeddings:

    input   a looked-up vector is replaced where its token is one of these
    output  the columns of the logits that belong to these tokens get the rows' difference from the table

The rows hold the values themselves and begin at those of the table, so the first passes are the start
policy's to the bit. Gradients and moments exist for these rows alone; a table is never copied in a
pass. ``peft`` keeps the same values under ``trainable_token_indices``, but computes with a copy of the whole
table and all of its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from skillpress.core.errors import PolicyError

PARAMETER = "trained_rows"
"""Name of the rows within the module of their table, and of this part within the model."""


class TrainedRows:
    """The trained rows within a model; the model stays an object of its class."""

    def __init__(self, model: PreTrainedModel, ids: Sequence[int]) -> None:
        """Insert the rows, which have gradients even if the rest of the model has none.

        Args:
            ids: the tokens, at least one.

        Raises:
            PolicyError: the model's embeddings do more than look rows up.
        """
        embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
        table = embeddings.weight
        assert isinstance(table, torch.Tensor) and isinstance(head, nn.Linear)
        self.ids = torch.tensor(sorted(set(ids)), device=table.device)
        self.on = True
        """Whether the model uses the rows; otherwise it is the model without them."""
        self._place = torch.full((len(table),), -1, device=table.device)
        self._place[self.ids] = torch.arange(len(self.ids), device=table.device)
        modules: list[nn.Module] = [embeddings] if head.weight is table else [embeddings, head]
        self._tables = {name: module for name, module in model.named_modules() if module in modules}
        self._output = modules[-1]
        with torch.no_grad():
            before = embeddings(self.ids)
        for module in modules:
            weight = module.weight
            assert isinstance(weight, torch.Tensor)
            module.register_parameter(PARAMETER, nn.Parameter(weight.detach()[self.ids].clone()))
        embeddings.register_forward_hook(self._looked_up)
        head.register_forward_hook(self._scored)
        # Not a module, so it adds no name to the model's state.
        setattr(model, PARAMETER, self)
        with torch.no_grad():
            if not torch.equal(embeddings(self.ids), before):
                raise PolicyError(
                    f"training.lora: the input embeddings of {type(model).__name__} do more than look rows "
                    "up, so the rows of policy.domain_tokens cannot be trained beside an adapter; set "
                    "training.lora to null or policy.domain_tokens to []"
                )

    @property
    def tables(self) -> dict[str, torch.Tensor]:
        """Name of each table's module in the model to the module's rows."""
        return {name: _rows(module) for name, module in self._tables.items()}

    @property
    def output(self) -> torch.Tensor:
        """[rows, hidden] the rows of the output embeddings."""
        return _rows(self._output)

    def merged(self, whole: Callable[[torch.Tensor], torch.Tensor]) -> dict[torch.Tensor, torch.Tensor]:
        """Maps each table, as the parameter it is, to a copy with these rows in place of its own.

        Args:
            whole: returns the full current weight, even if each rank holds a part.
        """
        found = {}
        for module in self._tables.values():
            table = module.weight
            assert isinstance(table, torch.Tensor)
            found[table] = whole(table).index_copy(0, self.ids, whole(_rows(module)))
        return found

    @contextmanager
    def switched_off(self) -> Iterator[None]:
        """The model has its old rows within the block."""
        self.on = False
        try:
            yield
        finally:
            self.on = True

    def _looked_up(self, module: nn.Module, arguments: tuple[Any, ...], output: torch.Tensor) -> Any:
        """The result of the input embeddings with these rows; None leaves it unchanged."""
        if not self.on:
            return None
        place = self._place[arguments[0]]
        # Place -1 means any other token. It gets row 0 here, and ``where`` drops it below.
        own = functional.embedding(place.clamp(min=0), _rows(module))
        scale = getattr(module, "embed_scale", None)  # Gemma
        if scale is not None:
            own = own * torch.as_tensor(scale).to(own.dtype)
        return torch.where((place >= 0)[..., None], own, output)

    def _scored(self, module: nn.Module, arguments: tuple[Any, ...], output: torch.Tensor) -> Any:
        """The result of the output embeddings with these rows' columns; None leaves it unchanged."""
        if not self.on:
            return None
        table = module.weight
        assert isinstance(table, torch.Tensor)
        return with_changes(output, arguments[0], self.changes(table), self.ids)

    def changes(self, table: torch.Tensor) -> torch.Tensor:
        """[rows, hidden] by which the rows of the output embeddings differ from their ``table``."""
        return self.output - table[self.ids]


def with_changes(
    raw: torch.Tensor, hidden: torch.Tensor, changes: torch.Tensor, ids: torch.Tensor
) -> torch.Tensor:
    """[..., vocabulary] the result ``raw`` of the output embeddings if the rows ``ids`` had these changes."""
    return raw.index_add(-1, ids, functional.linear(hidden, changes))


def trained_rows(model: PreTrainedModel) -> TrainedRows | None:
    """The model's trained rows; None if it has none."""
    found: TrainedRows | None = getattr(model, PARAMETER, None)
    return found


def _rows(module: nn.Module) -> torch.Tensor:
    found: torch.Tensor = getattr(module, PARAMETER)
    return found
