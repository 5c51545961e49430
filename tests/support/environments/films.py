"""A small world of questions about films, their directors and towns, for tests that need no shared data."""

from __future__ import annotations

from pathlib import Path

import polars as pl

FILMS = {
    "Silver Harbour": ("Ada Berg", "Gävle", 1931),
    "The Glass Road": ("Paul Onder", "Lindau", 1947),
    "Night Orchard": ("Mira Tal", "Ravenna", 1952),
    "Winter Ledger": ("Jon Falk", "Bergen", 1960),
    "Paper Comet": ("Lea Moor", "Ghent", 1968),
    "Red Lantern Hill": ("Tom Arden", "Leith", 1975),
}
"""Maps each film to its director, the director's town of birth, and the film's year."""
KINDS = ("train", "train", "train", "dev", "test", "test")


def corpus() -> pl.DataFrame:
    rows = []
    for number, (film, (director, town, year)) in enumerate(FILMS.items()):
        rows += [
            (f"f{number}", film, f"{film} is a film of {year}. It was directed by {director}."),
            (
                f"d{number}",
                director,
                f"{director} directed films. Born in {town}, the director moved to Rome.",
            ),
        ]
    return pl.DataFrame(rows, schema=["id", "title", "text"], orient="row")


def questions() -> pl.DataFrame:
    rows = [
        {
            "id": f"q{number}",
            "dataset": "hotpotqa",
            "split": split,
            "question": f"Where was the director of the film {film} born?",
            "answers": [town, f"{town} town"],
            "supporting_titles": [film, director],
            "kind": "bridge",
        }
        for number, ((film, (director, town, _)), split) in enumerate(zip(FILMS.items(), KINDS, strict=True))
    ]
    return pl.DataFrame(rows)


def write_world(folder: Path) -> Path:
    """A data folder."""
    corpus().write_parquet(folder / "paragraphs.parquet")
    questions().write_parquet(folder / "questions.parquet")
    return folder
