"""A dictionary for each task, fitted to the successes of all tasks but this one: reuse without repetition.

    skills:
      corpus: studies.critical.controls.other_tasks:OtherTasks
      dictionaries: studies.critical.controls.own_task:own_task

The second line gives each task a dictionary, and the first fits it to the others' successes. Tasks of one
piece share a shortcut, so a shortcut of the workshop is reused here if another task of its piece is in the
corpus. The metric ``dictionary/earlier_share`` has no meaning under this corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillpress.skills.buffer import Success
from skillpress.skills.step_corpus import Algorithm1, StepCorpus


class OtherTasks(Algorithm1):
    """For each task of the batch, 𝓑⁺ ∪ 𝒢 without the successes of this task."""

    def __call__(self, batch: Sequence[Success]) -> StepCorpus:
        """Each task's corpus, under the name of the task's dictionary.

        Raises:
            ValueError: tasks do not have a dictionary each.
        """
        newest = super().__call__(batch).judged
        judged: list[Success] = []
        for task, name in dict.fromkeys((success.task, success.dictionary) for success in batch):
            if task != name:
                raise ValueError(
                    f"skills.dictionaries gives task {task!r} the dictionary {name!r}; with the corpus "
                    "OtherTasks it must be studies.critical.controls.own_task:own_task"
                )
            others = [replace(each, dictionary=name) for each in newest if each.task != task]
            # An empty sequence needs no phrase: without another task, the dictionary is that of singletons.
            judged += others or [Success((), task, name)]
        return StepCorpus(judged)
