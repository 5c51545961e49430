"""The figures of a transformer that decide its memory, and these figures for models that params name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """The figures of a transformer that decide its memory."""

    parameters: int
    """Number of weights, with tied embeddings counted once."""
    layers: int
    hidden: int
    kv_heads: int
    head_size: int
    vocabulary: int
    heads: int
    intermediate: int
    """Width of the feed-forward layers."""
    soft_cap: bool = False
    """Whether logits are capped softly, which keeps one more copy of them."""
    positions: int | None = None
    """The most tokens of a prompt and its response together; None means no limit."""

    @property
    def linear_layers(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of the linear layers of one layer of the transformer; some families have fewer."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        attention = (self.hidden, queries), (self.hidden, keys), (self.hidden, keys), (queries, self.hidden)
        inner = self.hidden, self.intermediate
        return (*attention, inner, inner, (self.intermediate, self.hidden))

    def adapter(self, rank: int) -> int:
        """Number of weights of low-rank changes of all linear layers."""
        return rank * self.layers * sum(inner + outer for inner, outer in self.linear_layers)


KNOWN_SHAPES = {
    "Qwen/Qwen2.5-1.5B-Instruct": ModelShape(
        parameters=1_543_714_304,
        layers=28,
        hidden=1536,
        kv_heads=2,
        head_size=128,
        vocabulary=151_936,
        heads=12,
        intermediate=8960,
    ),
    "Qwen/Qwen2.5-7B-Instruct": ModelShape(
        parameters=7_615_616_512,
        layers=28,
        hidden=3584,
        kv_heads=4,
        head_size=128,
        vocabulary=152_064,
        heads=28,
        intermediate=18_944,
    ),
    "Qwen/Qwen3-1.7B": ModelShape(
        parameters=1_720_574_976,
        layers=28,
        hidden=2048,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        heads=16,
        intermediate=6144,
    ),
    "smollm2-135m": ModelShape(
        parameters=134_515_008,
        layers=30,
        hidden=576,
        kv_heads=3,
        head_size=64,
        vocabulary=49_152,
        heads=9,
        intermediate=1536,
    ),
}
"""Models that experiments name, in case their configuration is not available."""
