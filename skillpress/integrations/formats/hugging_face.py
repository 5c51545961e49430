"""A Hugging Face ``datasets`` folder with one row per decision, to read with ``datasets.load_from_disk``.

``prompt`` and ``completion`` are what other trainers call a sample: the text exactly as the policy saw it,
and its answer. Their token ids and log-probabilities are in the same row, so that nothing has to be tokenised
again. The columns of an episode repeat in each of its rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from skillpress.core.storage import atomic_directory
from skillpress.core.trajectory import Trajectory
from skillpress.integrations.formats.texts import Texts, facts

SCHEMA = pa.schema(
    {
        "task_id": pa.string(),
        "group_id": pa.string(),
        "rollout_index": pa.int32(),
        "policy": pa.string(),
        "policy_version": pa.int32(),
        "run": pa.int32(),
        "won": pa.bool_(),
        "outcome": pa.string(),
        "first_observation": pa.string(),
        "episode_reward": pa.float64(),
        "decision": pa.int32(),
        "summary": pa.bool_(),
        "prompt": pa.string(),
        "completion": pa.string(),
        "prompt_ids": pa.list_(pa.int32()),
        "completion_ids": pa.list_(pa.int32()),
        "logprobs": pa.list_(pa.float32()),
        "thought": pa.string(),
        "action": pa.string(),
        "observation": pa.string(),
        "invalid": pa.string(),
        "reward": pa.float64(),
    }
)
"""``decision`` counts the rows of an episode from 0; ``prompt`` is null without a tokenizer."""
STEP = ("prompt_ids", "logprobs", "thought", "action", "observation", "invalid", "reward")
"""Columns that are fields of a step."""
HELD = 256
"""The number of episodes whose rows are in memory together."""


def write_datasets(output: Path, episodes: Iterable[Trajectory], texts: Texts) -> None:
    """Write one or more episodes as a folder, atomically."""
    write_tables(output, _tables(episodes, texts), SCHEMA)


def write_tables(output: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    """Write tables of one schema as a folder, atomically. Few of them are in memory together."""
    import datasets  # seconds of importing, which other formats skip

    datasets.disable_progress_bars()
    with atomic_directory(output) as folder, tempfile.TemporaryDirectory(dir=folder) as scratch:
        arrow = Path(scratch) / "rows.arrow"
        with pa.ipc.new_stream(str(arrow), schema) as stream:
            for table in tables:
                stream.write_table(table)
        datasets.Dataset.from_file(str(arrow)).save_to_disk(str(folder))


def _tables(episodes: Iterable[Trajectory], texts: Texts) -> Iterator[pa.Table]:
    waiting = iter(episodes)
    while some := list(islice(waiting, HELD)):
        rows = list(chain.from_iterable(_rows(each, texts) for each in some))
        yield pa.Table.from_pylist(rows, SCHEMA)


def _rows(trajectory: Trajectory, texts: Texts) -> Iterator[dict[str, Any]]:
    whole = facts(trajectory, "run", "won", "outcome", "first_observation")
    pairs = zip(trajectory.decisions, texts(trajectory), strict=True)
    for number, (step, said) in enumerate(pairs):
        yield {
            **whole,
            "episode_reward": trajectory.total_reward,
            "decision": number,
            "summary": said.summary,
            "prompt": said.prompt,
            "completion": said.response,
            "completion_ids": step.response_ids,
            **{name: getattr(step, name) for name in STEP},
        }
