"""Plays episodes of a policy on this machine, in ``processes`` processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillpress.core.resume import ResumeStore
from skillpress.experiment.collection import CollectionJob, Play, play_episodes
from skillpress.experiment.params import Params
from skillpress.play.rollout.requests import EpisodeRequest


def play_here(
    policy: Path | None,
    params: Params,
    wanted: Sequence[EpisodeRequest],
    store: ResumeStore,
    output: Path,
    on_finished: Callable[[int], None],
) -> None:
    """Write the episodes in the order of ``wanted``; None as the ``policy`` means the random explorer."""
    job = CollectionJob(params, "evaluation", [Play(policy, wanted)], store)
    play_episodes(job, output, on_finished)
