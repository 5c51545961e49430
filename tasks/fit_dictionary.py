"""Stage: the dictionary of phrases that best describes the start policy's successes, and what training begins
with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.storage import write_json
from skillpress.core.task_files import read_tasks
from skillpress.evaluation.analysis.fitted import description_lengths, generalisation_bounds, read_corpus
from skillpress.evaluation.analysis.mdl_report import write_phrases
from skillpress.experiment.start_rollouts import start_successes
from skillpress.pipeline.files import DICTIONARY, PHRASES, RESULTS, SEQUENCES, START_SKILLS, split_file
from skillpress.skills.dictionary import save_fitted
from skillpress.skills.fit import fit_as
from skillpress.skills.start import write_start

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/dictionary.json, the bits that it saves and the bounds on these bits, and start.json,
    the buffer and the phrases with which training begins.

    If the start policy never succeeds, there is nothing to fit a dictionary to. That is not an error:
    training then uses plain rewards until it succeeds.
    """
    params = stage.params
    corpus, alphabet = read_corpus(SEQUENCES), params.environment.make_projection().alphabet
    metrics = {"sequences": float(len(corpus))}
    dictionary = None
    if corpus:
        dictionary = fit_as(params.skills, corpus, alphabet, params.seed)
        metrics |= description_lengths(dictionary, corpus)
        metrics |= generalisation_bounds(dictionary, corpus, params.environment.max_steps)
    save_fitted(DICTIONARY, dictionary)
    successes = start_successes(params, read_tasks(split_file("train")), SEQUENCES)
    write_start(START_SKILLS, params.skills, successes, alphabet, params.seed)
    write_phrases(PHRASES, dictionary, corpus)
    write_json(RESULTS / "dictionary.json", metrics)
    stage.run.log_metrics({f"dictionary/{name}": value for name, value in metrics.items()})
