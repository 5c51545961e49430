"""Stage: the dictionary of phrases that best describes the start policy's successes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.storage import write_json
from skillpress.evaluation.analysis.fitted import description_lengths, generalisation_bounds, read_corpus
from skillpress.evaluation.analysis.mdl_report import write_phrases
from skillpress.pipeline.files import DICTIONARY, PHRASES, RESULTS, SEQUENCES
from skillpress.skills.dictionary import save_fitted
from skillpress.skills.fit import fit_as

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage


def main(stage: Stage) -> None:
    """Write data/skills/dictionary.json, the bits that it saves, and the bounds on these bits.

    If the start policy never succeeds, there is nothing to fit a dictionary to. That is not an error:
    training then uses plain rewards until it succeeds.
    """
    params = stage.params
    corpus = read_corpus(SEQUENCES)
    metrics = {"sequences": float(len(corpus))}
    dictionary = None
    if corpus:
        alphabet = params.environment.make_projection().alphabet
        dictionary = fit_as(params.skills, corpus, alphabet, params.seed)
        metrics |= description_lengths(dictionary, corpus)
        metrics |= generalisation_bounds(dictionary, corpus, params.environment.max_steps)
    save_fitted(DICTIONARY, dictionary)
    write_phrases(PHRASES, dictionary, corpus)
    write_json(RESULTS / "dictionary.json", metrics)
    stage.run.log_metrics({f"dictionary/{name}": value for name, value in metrics.items()})
