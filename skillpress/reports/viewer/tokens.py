"""The text of each token, such that the texts of a sequence join to exactly what the tokenizer decodes.

A token may be part of a letter, and its text may depend on the token before it. So each token is decoded
together with the tokens before it, and its text is what it adds. An incomplete letter belongs to the token
that completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillpress.integrations.formats.texts import load_texts
from skillpress.reports.viewer.records import SampledToken, Token

INCOMPLETE = "\ufffd"
"""The decoder's mark for bytes that are not a letter, or not yet."""
WINDOW = 32
"""After this many tokens without a complete letter, the last token gets their bytes."""


class TokenTexts:
    """A policy's tokenizer."""

    def __init__(self, folder: Path) -> None:
        """Raises a UserError if the folder holds no tokenizer that can be read."""
        self._tokenizer = load_texts(folder).tokenizer

    def __call__(self, ids: Sequence[int]) -> list[str]:
        """The text of each token; joined, they are the decoded sequence, special tokens included."""
        whole, place = self._decode(ids), 0
        start = read = 0
        texts = [""] * len(ids)
        for end in range(1, len(ids) + 1):
            before, after = self._decode(ids[start:read]), self._decode(ids[start:end])
            text = after[len(before) :]
            fits = after.startswith(before) and whole.startswith(text, place)
            if fits and not after.endswith(INCOMPLETE):
                texts[end - 1], place = text, place + len(text)
                start, read = read, end
            elif end - read > WINDOW:
                break
        if texts:
            texts[-1] += whole[place:]
        return texts

    def _decode(self, ids: Sequence[int]) -> str:
        assert self._tokenizer is not None
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


def tokens(texts: TokenTexts | None, ids: Sequence[int], most: int) -> tuple[tuple[Token, ...], int | None]:
    """Tokens with their texts, ``most`` of them at most, and their full number if there are more."""
    shown = ids[:most]
    cut = len(ids) if len(ids) > most else None
    return tuple(zip(texts(shown) if texts else [None] * len(shown), shown, strict=True)), cut


def sampled(
    texts: TokenTexts | None, ids: Sequence[int], logprobs: Sequence[float], most: int
) -> tuple[tuple[SampledToken, ...], int | None]:
    """The same with their log-probabilities; None for a token without one."""
    shown, cut = tokens(texts, ids, most)
    known = [*logprobs[: len(shown)], *[None] * (len(shown) - len(logprobs))]
    return tuple((text, number, logprob) for (text, number), logprob in zip(shown, known, strict=True)), cut
