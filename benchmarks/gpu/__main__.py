"""What is to be measured on one GPU: a plan of parts that take at most five minutes each.

    python -m benchmarks.gpu [PART ...] [--folder data/gpu] [--results benchmarks/results] [--revision COMMIT]
    python -m benchmarks.gpu --tiny --folder FOLDER

``plan.py`` has the parts in their order, with a prediction for each. First comes a training to its end; then
ceilings, an update in several forms, a large model's memory, repeatability, a GRPO step beside TRL's,
sampling, the draw, growing prompts; then learning, as long as there is time. Each part is a process of its
own with a limit of time. Nothing needs a network. Without SmolLM2's weights, random ones of its shape are
measured. What needs vLLM, TRL or DeepSpeed and lacks it says so.

``gpu.json`` and ``gpu.md`` are written before every part, with its prediction, and after it. A part that
fails, is stopped, or lacks a package is a row with the reason and its last words, and the others run. A part
that finished under the same command, machine and versions is not run again, and an interrupted training goes
on: repeat the command to complete the page. Delete a part's folder in ``--folder`` to measure it again.

``--tiny`` runs the same parts on a CPU with small models, to try the command itself. An earlier plan ran
once on a GPU, an H200 (``benchmarks/results/gpu.md``), where time ended before ``learning`` had.
"""

from __future__ import annotations

import argparse
import shutil
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.gpu.page import page
from benchmarks.gpu.plan import full, tiny
from benchmarks.gpu.runner import PACKAGES, ROOT, Record, installed, machine, revision, run_all
from skillpress.core.storage import write_json, write_text


def main() -> None:
    """Write the record and its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="run only these parts of the plan")
    parser.add_argument("--tiny", action="store_true", help="at tiny size on a CPU")
    parser.add_argument("--folder", type=Path, default=ROOT / "data" / "gpu", help="keeps the parts")
    parser.add_argument("--results", type=Path, help="of gpu.json and gpu.md; of a tiny run, --folder")
    parser.add_argument("--revision", help="the commit, if git does not say it here")
    chosen = parser.parse_args()
    if not chosen.tiny and shutil.which("nvidia-smi") is None:
        parser.error("there is no nvidia-smi, so no GPU; --tiny runs the same parts on a CPU")
    plan = tiny() if chosen.tiny else full()
    names = [part.name for part in plan]
    if unknown := [name for name in chosen.parts if name not in names]:
        parser.error(f"the plan has no part {unknown[0]!r}; its parts are {', '.join(names)}")
    results: Path = chosen.results or (chosen.folder if chosen.tiny else ROOT / "benchmarks" / "results")
    about: Record = {
        "tiny": chosen.tiny,
        "machine": machine(chosen.tiny),
        "versions": {name: installed(name) or "missing" for name in (*PACKAGES, "trl", "vllm")},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": chosen.revision or revision(),
    }

    def report(record: Record) -> None:
        write_json(results / "gpu.json", record)
        write_text(results / "gpu.md", page(record))

    run_all(plan, chosen.folder.resolve(), about, report, chosen.parts)
    print(results / "gpu.md")


if __name__ == "__main__":
    main()
