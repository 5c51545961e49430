"""``skillpress export``: episodes in the formats of other tools.

    skillpress export --format atif data/rollouts/evaluation.parquet --output episodes
    skillpress export --format atif data/rollouts/evaluation.parquet --output episodes.jsonl
    skillpress export --format datasets data/rollouts/training.parquet --output trained
    skillpress export --format sharegpt results/evaluations/mine/rollouts.parquet --output mine.jsonl

atif      ATIF 1.7, which Harbor reads: a JSON file per episode, or a line of a .jsonl file
datasets  a folder for Hugging Face's datasets.load_from_disk, a row per decision
sharegpt  a JSON line per episode with its conversations

The policy's tokenizer turns its prompts and responses into text. It is searched for beside the model of the
run or the evaluation; --tokenizer names another place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from skillpress.cli import layers
from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.core.arguments import CommandParser, output_place
from skillpress.core.errors import UserError
from skillpress.core.rollout_files import TAKEN, iterate_rollouts, scan_rollouts
from skillpress.core.storage import sweep
from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.atif import write_atif
from skillpress.integrations.formats.sharegpt import write_sharegpt
from skillpress.integrations.formats.texts import TOKENIZER, Texts, load_texts
from skillpress.pipeline.files import BASE_POLICY, BASE_ROLLOUTS
from skillpress.pipeline.progress import StageProgress

_LOG = logging.getLogger(__name__)


def _write_datasets(output: Path, episodes: Iterable[Trajectory], texts: Texts) -> None:
    from skillpress.integrations.formats.hugging_face import (
        write_datasets,  # needs pyarrow, the other formats do not
    )

    write_datasets(output, episodes, texts)


FORMATS: dict[str, Callable[[Path, Iterable[Trajectory], Texts], None]] = {
    "atif": write_atif,
    "datasets": _write_datasets,
    "sharegpt": write_sharegpt,
}
"""The function that writes each ``--format``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    output: Path = chosen.output
    if chosen.format == "datasets":
        layers.need(["train"])
    if output.exists():
        raise UserError(f"--output: {output} exists already; name another path")
    count = episodes_of(chosen.rollouts)
    if not count:
        raise UserError(f"{chosen.rollouts}: has no episodes; name another file")
    texts = _texts(chosen.tokenizer, chosen.rollouts)
    sweep(output)
    with StageProgress("export", count, "episode") as progress:
        FORMATS[chosen.format](output, _counted(iterate_rollouts(chosen.rollouts), progress), texts)
    print(f"{count} episodes: {output}")
    return 0


def episodes_of(rollouts: Path) -> int:
    """The number of episodes in a rollout file."""
    first = scan_rollouts(rollouts).filter(TAKEN & (pl.col("step") == 0))
    return int(first.select(pl.len()).collect().item())


def tokenizer_beside(rollouts: Path) -> Path | None:
    """The folder with the tokenizer of the model that played: the one that an evaluation names, or the run's.
    None if neither exists.

    Raises:
        StorageError: the evaluation beside the file is damaged.
    """
    evaluation = EvaluationFolder(rollouts.resolve().parent)
    if evaluation.finished:
        return evaluation.tokenizer()
    above = list(evaluation.path.parents)
    run = above[len(BASE_ROLLOUTS.parent.parts) - 1 :][:1]  # empty for a file near the root
    return next((home / BASE_POLICY for home in run if (home / BASE_POLICY / TOKENIZER).is_file()), None)


def _texts(named: Path | None, rollouts: Path) -> Texts:
    folder = named or tokenizer_beside(rollouts)
    if folder is None or (named is None and layers.missing("tokens")):
        why, remedy = f"no tokenizer lies where {rollouts} was made", "--tokenizer FOLDER names one"
        if folder is not None:
            why, remedy = "the package tokenizers is not installed", layers.remedy("tokens")
        _LOG.warning(
            "export: %s; answers are exported as thought and action, without prompts (%s)", why, remedy
        )
        return Texts()
    layers.need(["tokens"])
    return load_texts(folder)


def _counted(episodes: Iterable[Trajectory], progress: StageProgress) -> Iterator[Trajectory]:
    for episode in episodes:
        yield episode
        progress.more(1)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("rollouts", type=Path, metavar="ROLLOUTS.parquet")
    parser.add_argument("--format", required=True, choices=FORMATS)
    parser.add_argument("--output", required=True, type=output_place, metavar="FILE|FOLDER")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="of the policy that played")
    return parser
