"""Stage: the dictionary of phrases that the start policy's successes are best described by."""

from __future__ import annotations

from tasks.stage import Stage, run_stage


def main(stage: Stage) -> None:
    """Write data/skills/dictionary.json and its description lengths, in bits.

    A start policy that never succeeds leaves nothing to fit a dictionary to. That is no error:
    training then goes by plain rewards until it succeeds.
    """
    from skillpress.environments import bundle
    from skillpress.skills import fit
    from skillpress.storage import write_json
    from skillpress.trajectory import read_sequences
    from tasks.data import RESULTS, SEQUENCES, save_fitted

    section = stage.params.skills
    corpus = [s.skills for s in read_sequences(SEQUENCES) if s.won and s.skills]
    metrics = {"sequences": float(len(corpus))}
    dictionary = None
    if corpus:
        alphabet = bundle(stage.params.environment.name).projection.alphabet
        dictionary = fit(corpus, alphabet, section.max_phrase_length, section.search, stage.params.seed)
        singletons = fit(corpus, alphabet, 1, section.search, stage.params.seed)
        metrics |= {
            "phrases": float(len(dictionary.phrases)),
            "segments_per_sequence": dictionary.segments / dictionary.sequences,
            "skills_per_sequence": singletons.segments / singletons.sequences,
            "dictionary_bits": dictionary.dictionary_bits,
            "data_bits": dictionary.data_bits,
            "description_length": dictionary.description_length,
            "description_length_of_singletons": singletons.description_length,
        }
    save_fitted(dictionary)
    write_json(RESULTS / "dictionary.json", metrics)
    stage.run.log_metrics({f"dictionary/{name}": value for name, value in metrics.items()})


if __name__ == "__main__":
    run_stage("fit_dictionary", main)
