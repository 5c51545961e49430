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


_FIGURES = {
    # The weights, layers, hidden, kv_heads, head_size, vocabulary, heads and intermediate of each.
    "Qwen/Qwen2.5-1.5B-Instruct": (1_543_714_304, 28, 1536, 2, 128, 151_936, 12, 8960),
    "Qwen/Qwen2.5-32B-Instruct": (32_763_876_352, 64, 5120, 8, 128, 152_064, 40, 27_648),
    "Qwen/Qwen2.5-7B-Instruct": (7_615_616_512, 28, 3584, 4, 128, 152_064, 28, 18_944),
    "Qwen/Qwen3-1.7B": (1_720_574_976, 28, 2048, 8, 128, 151_936, 16, 6144),
    "Qwen/Qwen3-4B": (4_022_468_096, 36, 2560, 8, 128, 151_936, 32, 9728),
    "smollm2-135m": (134_515_008, 30, 576, 3, 64, 49_152, 9, 1536),
}
KNOWN_SHAPES = {name: ModelShape(*figures) for name, figures in _FIGURES.items()}
"""Models that experiments name, in case their configuration is not available."""
