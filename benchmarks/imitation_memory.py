"""Memory and time of imitation's samples: in a file that is mapped into memory, or in Python's tuples.

    python -m benchmarks.imitation_memory [--samples 100000 1000000] [--updates 200]

Each form and size has a process of its own. It takes the samples from a generator, finds their chains, and
draws the first updates of an epoch, packed as a model takes them. No model runs. A prompt has 24 to 63 tokens
and a response 2 to 9; one sample in four extends the previous one. *Tuples* is the form before the files. The
memory is the process's own (``RssAnon``, looked at every 10 ms), less what it had before: pages of a mapped
file are the system's, which takes them back when it needs room. A hash of all drawn tokens shows that both
forms draw the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.device import status_bytes
from skillpress.core.chains import Pairs
from skillpress.models.policy.scoring import pack_responses
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.samples import Sample, Samples
from skillpress.training.imitation.trainer import batches

FORMS = ("tuples", "file")
PARAMETERS = ImitationParameters(
    demonstrations=1, thoughts=None, detour_rate=0.0, batch_size=128, epochs=1, learning_rate=0.1
)


class Watch:
    """The most memory of this process in the block, less what it had before."""

    def __enter__(self) -> Watch:
        self._before, self.most, self._done = status_bytes("RssAnon"), 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, status_bytes("RssAnon") - self._before)

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()


def made(count: int) -> Iterator[Sample]:
    """The same samples each time."""
    random = np.random.default_rng(0)
    before: tuple[int, ...] = ()
    for number in range(count):
        fresh = tuple(random.integers(0, 4096, int(random.integers(24, 64))).tolist())
        prompt = (before + fresh)[:63] if number % 4 == 3 else fresh
        response = tuple(random.integers(0, 4096, int(random.integers(2, 10))).tolist())
        before = prompt + response
        yield prompt, response


def measure(form: str, count: int, updates: int) -> dict[str, Any]:
    """The figures of one form."""
    with tempfile.TemporaryDirectory() as folder, Watch() as watch:
        began = time.process_time()
        if form == "file":
            samples: Samples | Pairs = Samples.written(Path(folder) / "samples.arrow", made(count))
        else:
            samples = Pairs.of([*made(count)])
        chains = samples.chains
        ready, said = time.process_time(), hashlib.sha256()
        for rows in islice(batches(chains, PARAMETERS, 0), updates):
            said.update(pack_responses(samples.select(rows)).targets.numpy().tobytes())
        drawn = time.process_time()
    return {
        "peak_bytes": watch.most,
        "seconds_to_be_ready": round(ready - began, 2),
        "milliseconds_per_update": round(1000 * (drawn - ready) / updates, 3),
        "drawn": said.hexdigest()[:16],
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--form", choices=FORMS, help="measure this form and the first number only")
    chosen = parser.parse_args()
    if chosen.form:
        print(json.dumps(measure(chosen.form, chosen.samples[0], chosen.updates)))
        return
    found: dict[str, Any] = {}
    for form in FORMS:
        for count in chosen.samples:
            command = [sys.executable, "-m", "benchmarks.imitation_memory", "--form", form]
            command += ["--samples", str(count), "--updates", str(chosen.updates)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.setdefault(form, {})[str(count)] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps({**found, "load": os.getloadavg()[0]}, indent=2))


if __name__ == "__main__":
    main()
