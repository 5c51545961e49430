"""The dictionary's time and quality, against its reference, a long search and HF tokenizers.

    python -m benchmarks.dictionary [--only SECTION ...] [--rollouts data/skills/sequences.parquet]

It uses one thread, and writes JSON to standard output and benchmarks/results/dictionary.json. A section that
is not measured keeps its values in the file; ``measured`` says when and on which machine each was measured:

- ``e_step``: a whole ``fit`` of 384 sequences (a buffer of 256 and a batch of 128), from names to dictionary,
  median of many warm calls; and the reference's search on the same corpus in the same run.
- ``segmentation``: seg of 256 sequences that already consist of numbers, under the fitted dictionary.
- ``quality``: 𝓛_BDL over corpora of 256 sequences, against a long iterated local search (kicks, each followed
  by the refined search's own local search). Its dictionary is the best known, not the optimum.
- ``scaling``: ``fit`` of 10^3 to 10^6 sequences against the ``BpeTrainer`` of Hugging Face tokenizers on the
  same corpus (one letter per skill), stopped at the same vocabulary size. The two alternate. Ours also
  evaluates the description length and counts uses. Memory is the peak of ``fit`` above the process's memory
  before, which includes the caller's sequences.
- ``rollouts``: the first two on successes of real rollouts, as written by the stage ``project_skills``.
- ``first_call``: seconds of the first ``fit`` in a new process, with compilation and with a filled cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import polars as pl
import tokenizers
from tokenizers import Tokenizer, models, trainers

from benchmarks.greedy_reference import greedy_reference
from benchmarks.skill_corpora import ALFWORLD, CORPORA, COUNTDOWN, Sequences, alfworld_like
from skillpress.core.seeds import generator
from skillpress.core.storage import read_json, write_json
from skillpress.skills.corpus import count_numbers, make_corpus
from skillpress.skills.fit import fit
from skillpress.skills.grams import number_grams
from skillpress.skills.lookup import costs, make_table
from skillpress.skills.search.greedy import merge_pairs
from skillpress.skills.search.refined import improve

RESULT = Path(__file__).parent / "results" / "dictionary.json"
L = 4
E_STEP, SEGMENTED = 384, 256
QUALITY_CORPORA, KICKS = 12, 900


def milliseconds(work: Callable[[], object], repeats: int) -> list[float]:
    """Durations of ``repeats`` calls after one to warm up."""
    work()
    return [milliseconds_once(work) for _ in range(repeats)]


def number(sequences: Sequences, alphabet: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Convert names to positions in the alphabet."""
    position = {skill: place for place, skill in enumerate(alphabet)}
    return [tuple(position[skill] for skill in sequence) for sequence in sequences]


def measure_e_step(sequences: Sequences, alphabet: tuple[str, ...]) -> dict[str, Any]:
    """Milliseconds of greedy, refined and the reference on one corpus."""
    numbered = number(sequences, alphabet)
    found, better = fit(sequences, alphabet, L), fit(sequences, alphabet, L, "refined")
    alternating = [
        [milliseconds_once(partial(fit, sequences, alphabet, L, search)) for _ in range(3)]
        for _ in range(40)
        for search in ("greedy", "refined")
    ]
    greedy = statistics.median(ms for times in alternating[0::2] for ms in times)
    refined = statistics.median(ms for times in alternating[1::2] for ms in times)
    reference = statistics.median(milliseconds(lambda: greedy_reference(numbered, len(alphabet), L), 3))
    return {
        "sequences": len(sequences),
        "skills": sum(map(len, sequences)),
        "phrases_learned": len(found.learned),
        "greedy_ms": round(greedy, 3),
        "reference_ms": round(reference, 1),
        "reference_over_greedy": round(reference / greedy, 1),
        "refined_ms": round(refined, 3),
        "refined_over_greedy": round(refined / greedy, 1),
        "greedy_bits": round(found.description_length, 3),
        "refined_bits": round(better.description_length, 3),
    }


def measure_segmentation(sequences: Sequences, alphabet: tuple[str, ...]) -> dict[str, Any]:
    """Microseconds to compute seg of all sequences."""
    dictionary = fit(sequences, alphabet, L)
    table = make_table(number(list(dictionary.phrases), alphabet), len(alphabet), L)
    packed = make_corpus(sequences, alphabet)
    median = statistics.median(milliseconds(lambda: costs(packed, table), 2000))
    return {"sequences": len(sequences), "distinct": len(packed.weights), "us": round(1000 * median, 1)}


def long_search(sequences: Sequences, seed: int) -> float:
    """Bits per sequence after ``KICKS`` random changes, each followed by a local search."""
    corpus = count_numbers(number(sequences, ALFWORLD), len(ALFWORLD))
    grams = number_grams(corpus, L)
    rng = generator(seed, "long search")
    pool = np.flatnonzero((grams.lengths > 1) & (grams.uses > 1))
    bits, best = improve(grams, merge_pairs(grams, True, -1), np.inf)
    for _ in range(KICKS):
        kicked = list(best)
        for _ in range(rng.integers(1, 5)):
            if kicked and rng.random() < 0.5:
                kicked.pop(rng.integers(len(kicked)))
            else:
                kicked.append(rng.choice(pool))
        reached, found = improve(grams, np.array(list(dict.fromkeys(kicked)), np.int64), np.inf)
        if reached <= bits:
            bits, best = reached, found
    return bits


def measure_quality() -> dict[str, Any]:
    """Percent above the long search, mean over corpora."""
    above: dict[str, list[float]] = {"greedy": [], "refined": []}
    for seed in range(QUALITY_CORPORA):
        sequences = alfworld_like(256, 1000 + seed)
        best = long_search(sequences, seed)
        for search, percents in above.items():
            found = fit(sequences, ALFWORLD, L, search).description_length
            percents.append(100 * (found / best - 1))
    return {
        "corpora": QUALITY_CORPORA,
        "kicks": KICKS,
        **{
            f"{search}_above_percent": {"mean": round(statistics.mean(p), 2), "worst": round(max(p), 2)}
            for search, p in above.items()
        },
    }


def train_bpe(words: list[str], size: int) -> int:
    """Hugging Face's trainer, stopped at a vocabulary size; returns the size it reached."""
    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator(words, trainer, length=len(words))
    return int(tokenizer.get_vocab_size())


def measure_scaling(largest: int) -> list[dict[str, Any]]:
    """Seconds of both trainers, by size."""
    fit(alfworld_like(100, 0), ALFWORLD, L)  # loads the machine code
    rows = []
    count = 1000
    while count <= largest:
        sequences = alfworld_like(count, 0)
        words = ["".join("ABCDE"[skill] for skill in s) for s in number(sequences, ALFWORLD)]
        before = forget_peak_memory()
        dictionary = fit(sequences, ALFWORLD, L)
        risen = memory("VmHWM") - before
        size = len(dictionary.phrases)
        ours, theirs = [], []
        for _ in range(3 if count >= 10**6 else 5):
            ours.append(milliseconds_once(partial(fit, sequences, ALFWORLD, L)))
            theirs.append(milliseconds_once(partial(train_bpe, words, size)))
        rows.append(
            {
                "sequences": count,
                "distinct": len(set(sequences)),
                "skills": sum(map(len, sequences)),
                "vocabulary": size,
                "hf_vocabulary": train_bpe(words, size),
                "fit_s": round(statistics.median(ours) / 1000, 4),
                "hf_bpe_s": round(statistics.median(theirs) / 1000, 4),
                "hf_over_fit": round(statistics.median(theirs) / statistics.median(ours), 2),
                "fit_memory_mib": round(risen / 1024, 1),
            }
        )
        count *= 10
    return rows


def forget_peak_memory() -> int:
    """Reset the process's peak memory (Linux); returns the KiB in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(field: str) -> int:
    """A field of /proc/self/status in KiB: ``VmRSS`` in use, ``VmHWM`` the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def milliseconds_once(work: Callable[[], object]) -> float:
    """The CPU time of one call, not warmed up. All run in one thread, and other work may run on the
    machine."""
    started = time.process_time()
    work()
    return 1000 * (time.process_time() - started)


def measure_first_call() -> dict[str, float]:
    """Seconds of the first greedy fit of a process, with an empty and with a filled cache."""
    program = (
        "import time; from skillpress.skills.fit import fit; started = time.perf_counter();"
        "fit([('A', 'B')] * 9, ('A', 'B'), 4); print(time.perf_counter() - started)"
    )
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("compiling", "cached"):
            finished = subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "XDG_CACHE_HOME": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            seconds[f"{name}_s"] = round(float(finished.stdout), 2)
    return seconds


def read_rollouts(path: Path) -> Sequences:
    """The successes of a file that the stage ``project_skills`` wrote."""
    won = pl.read_parquet(path).filter(pl.col("won"))
    return [tuple(skills) for skills in won["skills"].to_list()]


def measure_rollouts(path: Path) -> dict[str, Any]:
    """The measurements on Countdown's real successes."""
    successes = read_rollouts(path)
    return {
        "e_step": measure_e_step(successes[:E_STEP], COUNTDOWN),
        "segmentation": measure_segmentation(successes[:SEGMENTED], COUNTDOWN),
    }


def circumstances() -> dict[str, str]:
    """The time and machine of a measurement."""
    cpus = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "clock": "CPU time",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{cpus[0].split(':')[1].strip() if cpus else platform.machine()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, tokenizers {tokenizers.__version__}",
    }


def main() -> None:
    """Measure the given sections, store them beside the others and print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=10**6, help="sequences of the largest corpus")
    parser.add_argument("--rollouts", type=Path, default=Path("data/skills/sequences.parquet"))
    corpora = {name: (make(E_STEP, 0), alphabet) for name, (make, alphabet) in CORPORA.items()}
    sections: dict[str, Callable[[], object]] = {
        "scaling": lambda: measure_scaling(arguments.largest),
        "e_step": lambda: {name: measure_e_step(*corpus) for name, corpus in corpora.items()},
        "segmentation": lambda: {
            name: measure_segmentation(sequences[:SEGMENTED], alphabet)
            for name, (sequences, alphabet) in corpora.items()
        },
        "rollouts": lambda: measure_rollouts(arguments.rollouts),
        "first_call": measure_first_call,
        "quality": measure_quality,
    }
    parser.add_argument("--only", nargs="+", choices=sections, help="default: all")
    arguments = parser.parse_args()
    chosen = arguments.only or [s for s in sections if s != "rollouts" or arguments.rollouts.exists()]
    result = read_json(RESULT) if RESULT.exists() else {"measured": {}}
    for section in chosen:
        result[section] = sections[section]()
        result["measured"][section] = circumstances()
        write_json(RESULT, result)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
