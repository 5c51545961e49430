"""Probes measure a policy while it learns, on tasks that it learns from and on a kind that it never meets.

Does compression predict generalisation? Probes answer this for the policies of one training: the start
policy, the policy after every few steps, and the last one. Each plays ``training.probe.tasks`` training tasks
and as many of the split ``unseen``, once each, sampled as in training. The tasks and their seeds derive from
the experiment's seed and are the same at every probe. So two probes differ only in the policy, and probes do
not change the random numbers of training.

A probe leaves rows of :data:`PROBE_SCHEMA`: one for each split as a whole, and one for each stratum in it.
The dictionary is fitted to the successes on training tasks alone, like the experiment's own but without a
buffer and for all classes of tasks together. It is used for all rows. With m of these successes

    description_length   L_BDL, bits per success (Eq. 3)
    certificate          the half-sample bound on it, in bits (``skillpress.skills.bounds``)

and both fall with m, because the dictionary's own bits are spread over m successes; so each row also has m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.core.resume import ResumeStore
from skillpress.core.seeds import generator
from skillpress.core.tables import scan_table, write_table
from skillpress.core.trajectory import Task, skill_sequence
from skillpress.environments.section import Projection
from skillpress.rollouts.collection import Collector, requests
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.bounds import Bound, certifiable, certify
from skillpress.skills.dictionary import SkillDictionary
from skillpress.skills.fit import fit_as
from skillpress.skills.parameters import SkillParameters

KIND = "probes"
TRAIN, UNSEEN = "train", "unseen"

PROBE_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "step": pl.Int32,
    "split": pl.String,
    "stratum": pl.String,
    "tasks": pl.Int32,
    "success": pl.Float64,
    "steps": pl.Float64,
    "skills": pl.Float64,
    "segments": pl.Float64,
    "segments_per_skill": pl.Float64,
    "corpus": pl.Int32,
    "phrases": pl.Int32,
    "description_length": pl.Float64,
    "certificate": pl.Float64,
    "certificate_singletons": pl.Float64,
}
"""One row per probed step, split and stratum; means over nothing are null.

- ``step``: the training step after which the policy was probed; 0 is the start policy.
- ``split``: ``train`` or ``unseen``; ``stratum`` of the tasks, null for the split as a whole.
- ``tasks``: how many were played, once each; ``success``: the share of them that were won.
- ``steps``, ``skills``: means over successes, of the steps taken and of |s|.
- ``segments``: the mean of seg(s, C) over successes; ``segments_per_skill``: its sum divided by the sum of
  |s|.
- The other columns describe the dictionary and are set only in the row of all training tasks: ``corpus``, the
  number of successes with a skill that it was fitted to; ``phrases``, the number of learned phrases of two or
  more skills; ``description_length``; ``certificate``; and ``certificate_singletons``, the bound without
  phrases.
  Both certificates are null for fewer than two successes, and where one has more skills than T.
"""


@dataclass(frozen=True)
class ProbedEpisode:
    """The part of an episode that a probe stores."""

    split: str
    number: int
    """Position of its task among the split's probed tasks."""
    stratum: str
    won: bool
    steps: int
    skills: tuple[str, ...]
    """s."""


@dataclass(frozen=True)
class Probe:
    """One rank's part of probing; exists only if ``training.probe`` is set."""

    tasks: Mapping[str, Sequence[Task]]
    """Split to the tasks that every probe plays."""
    every: int
    last: int
    """The last training step."""
    collector: Collector
    projection: Projection
    skills: SkillParameters
    max_steps: int
    """T."""
    seed: int
    ranks: Ranks
    store: ResumeStore
    """Store of each probe's rows until the end."""

    def __call__(self, step: int) -> dict[str, float]:
        """Probe the policy after ``step`` if a probe is due. All ranks call this, while nothing else plays.

        Returns:
            The figures of both splits as metrics; empty if no probe is due.
        """
        if not self.due(step):
            return {}
        found = self.ranks.gather(self._played(step))
        rows = probe_rows(
            step, found, self.projection.alphabet, self.skills, max_steps=self.max_steps, seed=self.seed
        )
        if self.ranks.rank == 0:
            write_table(self.store.part("probe", step), frame_of(rows), KIND)
        return metrics_of(rows)

    def write(self, path: Path) -> None:
        """Write the joined rows of all probes; one rank calls this."""
        parts = [self.store.part("probe", step) for step in range(self.last + 1) if self.due(step)]
        write_table(path, pl.concat([read_probes(part) for part in parts]), KIND)

    def due(self, step: int) -> bool:
        """Whether the policy after ``step`` is to be probed."""
        return step % self.every == 0 or step == self.last

    def _played(self, step: int) -> list[ProbedEpisode]:
        """This rank's share of the probe's episodes."""
        share = slice(self.ranks.rank, None, self.ranks.size)
        mine = [
            (split, number, task)
            for split, tasks in self.tasks.items()
            for number, task in list(enumerate(tasks))[share]
        ]
        asked = [
            request
            for split, _, task in mine
            # Without the step: the seeds are the same at every probe.
            for request in requests([task], 1, self.seed, "probe", split, policy="probed")
        ]
        return [
            ProbedEpisode(
                split=split,
                number=number,
                stratum=task.stratum,
                won=episode.won,
                steps=len(episode.steps),
                skills=skill_sequence(self.projection, task, episode),
            )
            for (split, number, task), episode in zip(mine, self.collector.collect(asked, step), strict=True)
        ]


def probed_tasks(tasks: Sequence[Task], count: int, seed: int, split: str) -> list[Task]:
    """``count`` of a split's tasks, drawn with the experiment's seed."""
    order = generator(seed, "probed tasks", split).permutation(len(tasks))
    return [tasks[index] for index in order[:count]]


def probe_rows(
    step: int,
    episodes: Sequence[ProbedEpisode],
    alphabet: Sequence[str],
    skills: SkillParameters,
    max_steps: int,
    seed: int,
) -> list[dict[str, Any]]:
    """The rows of one probe; the order of its episodes does not matter."""
    ordered = sorted(episodes, key=lambda episode: (episode.split, episode.number))
    corpus = [e.skills for e in ordered if e.split == TRAIN and e.won and e.skills]
    dictionary = fit_as(skills, corpus, alphabet, seed) if corpus else None
    rows = []
    for split in sorted({episode.split for episode in ordered}):
        of_split = [episode for episode in ordered if episode.split == split]
        own = _of_dictionary(dictionary, corpus, max_steps) if split == TRAIN else {}
        rows.append({"step": step, "split": split, **_of_episodes(of_split, dictionary), **own})
        for stratum in sorted({episode.stratum for episode in of_split}):
            within = [episode for episode in of_split if episode.stratum == stratum]
            of_stratum = _of_episodes(within, dictionary)
            rows.append({"step": step, "split": split, "stratum": stratum, **of_stratum})
    return rows


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a table of :data:`PROBE_SCHEMA`."""
    return pl.DataFrame(
        [[row.get(name) for name in PROBE_SCHEMA] for row in rows], PROBE_SCHEMA, orient="row"
    )


def read_probes(path: str | Path) -> pl.DataFrame:
    """The rows of all probes of a training; empty if it had none.

    Raises:
        StorageError: missing, truncated, or of another schema.
    """
    return scan_table(path, KIND, PROBE_SCHEMA).collect()


def metrics_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Metrics ``probe/<split>/<figure>`` of whole splits."""
    return {
        f"probe/{row['split']}/{name}": float(row[name])
        for row in rows
        if row.get("stratum") is None
        for name in list(PROBE_SCHEMA)[4:]
        if row.get(name) is not None
    }


def _of_episodes(episodes: Sequence[ProbedEpisode], dictionary: SkillDictionary | None) -> dict[str, Any]:
    """The figures of some tasks; means are null without a success."""
    won = [episode for episode in episodes if episode.won]
    counted = {"tasks": len(episodes), "success": len(won) / len(episodes)}
    if not won:
        return counted
    skills = sum(len(episode.skills) for episode in won)
    means = {"steps": sum(episode.steps for episode in won) / len(won), "skills": skills / len(won)}
    if dictionary is None:
        return {**counted, **means}
    segments = sum(dictionary.costs([episode.skills for episode in won]))
    per_skill = {"segments_per_skill": segments / skills} if skills else {}
    return {**counted, **means, "segments": segments / len(won), **per_skill}


def _of_dictionary(
    dictionary: SkillDictionary | None, corpus: Sequence[tuple[str, ...]], max_steps: int
) -> dict[str, Any]:
    """The figures of the dictionary itself."""
    if dictionary is None:
        return {"corpus": 0}
    found = {
        "corpus": len(corpus),
        "phrases": len(dictionary.learned),
        "description_length": dictionary.description_length,
    }
    if not certifiable(corpus, max_steps):
        return found
    certificate = certify(dictionary, corpus, max_steps)
    return {
        **found,
        "certificate": _half_sample(certificate.learned).bits,
        "certificate_singletons": _half_sample(certificate.singletons).bits,
    }


def _half_sample(bounds: Sequence[Bound]) -> Bound:
    return next(bound for bound in bounds if bound.name == "half_sample")
