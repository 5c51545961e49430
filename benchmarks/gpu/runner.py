"""Runs parts one after the other, each as one child process, and keeps what each found.

A part's folder is named by a hash of its command, the machine and the versions of the packages. A finished
part leaves ``found.json`` there and is not run again. A failed part is run again and finds its files.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.gpu.plan import CEILING, FOLDER, Part
from skillpress.core.storage import read_json, write_json

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "transformers", "deepspeed")
LAST_WORDS = 15
"""Lines of a failed part's output that its record has."""
Record = dict[str, Any]


def installed(package: str) -> str | None:
    """The version of a package; None if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def machine(tiny: bool) -> Record:
    """What the figures depend on besides the packages: the GPU with its driver and memory, or the CPU."""
    found: Record = {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    if not tiny:
        fields = "name,driver_version,memory.total"
        asked = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
        found |= dict(zip(fields.split(","), said.splitlines()[0].split(", "), strict=True))
    return found


def revision() -> str:
    """The commit of this repository, with a mark if files differ from it."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


@dataclass
class Runner:
    """The folder in which parts work, and what they have in common."""

    folder: Path
    machine: Record
    done: dict[str, Record]
    """Records of the parts so far, by name."""
    revision: str = field(default_factory=revision)
    """The commit that is measured."""

    def run(self, part: Part) -> Record:
        """The record of a part: what it found, or why it did not."""
        found = self.found(part)
        if found is None:
            found = self._try(part)
            if "result" in found:
                write_json(self.place(part) / "found.json", found)
        return found

    def found(self, part: Part) -> Record | None:
        """The record of a part that has finished; None if it has not."""
        kept = self.place(part) / "found.json"
        found: Record | None = read_json(kept) if kept.exists() else None
        return found

    def place(self, part: Part) -> Path:
        """The part's folder."""
        packages = [*PACKAGES, *([part.package] if part.package else [])]
        start = self.done.get(part.start_of, {}).get("folder")
        decides = [part.command, self.machine, {name: installed(name) for name in packages}, start]
        key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:12]
        return self.folder / f"{part.name}-{key}"

    def _try(self, part: Part) -> Record:
        if part.package and installed(part.package) is None:
            return _unfinished(part, f"{part.package} is not installed")
        if part.start_of and "result" not in self.done.get(part.start_of, {}):
            return _unfinished(part, f"{part.start_of} did not finish")
        return self._started(part)

    def _started(self, part: Part) -> Record:
        place = self.place(part)
        place.mkdir(parents=True, exist_ok=True)
        if part.start_of:
            self._link(part, place)
        module, *options = self._filled(part, place)
        began = time.perf_counter()
        code = run_within([sys.executable, "-m", module, *options], place, part.seconds)
        record: Record = {
            "what": part.what,
            "command": ["python", "-m", *part.command],
            "seconds": round(time.perf_counter() - began, 1),
            "limit": part.seconds,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "revision": self.revision,
        }
        out, err = ((place / name).read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        result = last_json(out) if code in (0, None) else None  # it may be stopped while it ends
        if result is not None:
            return {**record, "result": result}
        why = {None: f"stopped after {part.seconds:g} seconds", 0: "printed no JSON"}
        said = f"{out}\n{err}".splitlines()[-LAST_WORDS:]
        return {**record, "failed": why.get(code, f"ended with exit code {code}"), "last_words": said}

    def _link(self, part: Part, place: Path) -> None:
        """Show the part the tasks and the start policy of the earlier part."""
        source = Path(self.done[part.start_of]["folder"])
        for folder in source.glob("seed-*"):
            for file in (*folder.glob("*.parquet"), folder / "start"):
                link = place / folder.name / file.name
                link.parent.mkdir(exist_ok=True)
                if not link.exists():
                    link.symlink_to(file.resolve())

    def _filled(self, part: Part, place: Path) -> list[str]:
        """The command with the folder and the ceiling; without the ceiling if it is unknown."""
        words = [str(place.resolve()) if word == FOLDER else word for word in part.command]
        if CEILING in words:
            where = words.index(CEILING)
            ceiling = self.done.get("ceilings", {}).get("result", {}).get("teraflops")
            words[where - 1 : where + 1] = [] if ceiling is None else [words[where - 1], str(ceiling)]
        return words


def run_within(command: Sequence[str], place: Path, seconds: float) -> int | None:
    """A command's exit code; None if it was stopped after this time, with everything that it had started."""
    with (place / "stdout").open("wb") as out, (place / "stderr").open("wb") as err:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its group: also after its own end, if it left others behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def last_json(text: str) -> Any:
    """The JSON at the end of a program's output, before which libraries may print; None if there is none."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(("{", "["))]
    for start in starts:
        try:
            # a record has no NaN, which JSON does not know
            return json.loads("\n".join(lines[start:]), parse_constant=lambda word: None)
        except ValueError:
            continue
    return None


def without(record: Record, key: str) -> Record:
    """The record without a key."""
    return {name: value for name, value in record.items() if name != key}


def run_all(
    parts: Sequence[Part],
    folder: Path,
    about: Record,
    report: Callable[[Record], None],
    chosen: Collection[str] = (),
) -> None:
    """Run the parts in their order.

    Args:
        about: what the record says besides the parts.
        report: receives the record before every part, with its prediction, and after it.
        chosen: names of the only parts to run; empty runs all. What others found is kept.
    """
    runner = Runner(folder, about["machine"], {}, about["revision"])

    def keep(part: Part, record: Record) -> None:
        own = {"prediction": part.prediction, "folder": str(runner.place(part))}
        runner.done[part.name] = {**record, **own}
        print(f"{part.name}: {record.get('failed', 'done')}", file=sys.stderr, flush=True)
        report({**about, "parts": {name: without(each, "folder") for name, each in runner.done.items()}})

    for number, part in enumerate(parts):
        found = runner.found(part)
        if found is not None or (chosen and part.name not in chosen):
            keep(part, found or _unfinished(part, "not begun"))
            continue
        print(f"{part.name}: {part.what} (at most {part.seconds:g} s)", file=sys.stderr, flush=True)
        keep(part, _unfinished(part, "runs"))
        try:
            keep(part, runner.run(part))
        except KeyboardInterrupt:
            for late in parts[number:]:
                why = "interrupted" if late is part else "not begun"
                keep(late, runner.found(late) or _unfinished(late, why))
            raise


def _unfinished(part: Part, why: str) -> Record:
    return {"what": part.what, "failed": why, "last_words": []}
