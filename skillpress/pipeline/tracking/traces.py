"""A sample of a stage's episodes as MLflow traces; ``episode_trace.py`` says what a trace contains.

A hundred episodes of ten steps take about two seconds of a core.
"""

from __future__ import annotations

import time
from pathlib import Path

from mlflow.tracing.client import TracingClient

from skillpress.doors.formats.texts import TOKENIZER, Texts, load_texts
from skillpress.pipeline.tracking.episode_sample import sample_episodes
from skillpress.pipeline.tracking.episode_trace import MILLISECOND, EpisodeTrace, StageRecord

TOGETHER = 20
"""Traces whose spans are written in one call."""


def log_traces(of: StageRecord, rollouts: Path, policy: Path, most: int) -> None:
    """Record a sample of a rollout file; lists of traces show the file's first episode first.

    A stage that was killed and continues in its run writes the same traces again, but each only once.

    Args:
        policy: a folder with the tokenizer of the policy that played; without one there are no prompts.
        most: the most episodes to record.
    """
    texts = load_texts(policy) if (policy / TOKENIZER).is_file() else Texts()
    client, now = TracingClient(), time.time_ns()
    traces = [
        EpisodeTrace(of, episode, tuple(texts(episode)), now - number * MILLISECOND)
        for number, episode in enumerate(sample_episodes(rollouts, most))
    ]
    for first in range(0, len(traces), TOGETHER):
        some = traces[first : first + TOGETHER]
        for trace in some:
            client.start_trace(trace.info())
        client.log_spans(of.experiment_id, [span for trace in some for span in trace.spans()])
