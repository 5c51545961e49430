"""What training begins with besides the start policy (``skills.start``): successes and their dictionary.

``empty`` is Algorithm 1 to the letter: the buffer is empty before the first batch. With ``rollouts`` the
successes of the start policy count as step 0. They enter the corpus like those of any step, so a buffer keeps
the newest of them. A dictionary is fitted to those and is step 0 of the phrases' history. The first
batch is then judged with these successes, and later ones as long as the corpus keeps them.

The file has the states that a checkpoint has of the same parts. A training that resumes from a checkpoint
does not read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillpress.core.errors import StorageError
from skillpress.core.storage import read_schema, write_json
from skillpress.skills.buffer import Success
from skillpress.skills.dictionaries import fit_each
from skillpress.skills.history import PhraseHistory
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.step_corpus import SuccessCorpus

SCHEMA = "skillpress.start/1"


def write_start(
    path: str | Path,
    section: SkillParameters,
    successes: Sequence[Success],
    alphabet: Sequence[str],
    seed: int,
) -> int:
    """Write what training begins with, atomically; returns the number of successes that it begins with.

    Args:
        successes: those of the start policy, oldest first; ``start: empty`` uses none of them.
    """
    corpus, history = section.make_corpus(seed), PhraseHistory()
    if section.start == "rollouts" and successes:
        corpus.push(successes)
        if found := fit_each(section, corpus([]), alphabet, seed):
            history.record(0, found.values())
    content = {"schema": SCHEMA, "corpus": corpus.state_dict(), "history": history.state_dict()}
    write_json(path, content)
    return len(corpus.earlier)


def load_start(path: str | Path, corpus: SuccessCorpus, history: PhraseHistory) -> None:
    """Restore a training's parts from the states that :func:`write_start` wrote.

    Raises:
        StorageError: the file is missing, damaged, of another schema, or of another corpus.
    """
    content = read_schema(path, SCHEMA, "run the stage fit_dictionary again")
    try:
        corpus.load_state_dict(content["corpus"])
        history.load_state_dict(content["history"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StorageError(f"{path}: damaged ({error}); run the stage fit_dictionary again") from error
