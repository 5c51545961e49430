"""A stage's record in MLflow, kept by a separate process.

Importing MLflow and opening its database takes about two seconds of a core, once per stage. A stage therefore
only writes lines (JSON, one call each) to a child process, which has MLflow ready by the time of the first
line. Ctrl-C does not reach the child, so the stage decides how to react. When a stage is killed, the pipe
closes: the child logs the lines that it has received, leaves the run unfinished, and ends. Until then it
holds the stage's lock, so that no successor reads the run while it is still being written.

MLflow may also fail while the stage works. The metrics of every step are therefore kept in a file as well,
until the run is finished. A successor records what its predecessor could not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from skillpress.core.errors import ParamsError, UserError
from skillpress.core.log_lines import set_up
from skillpress.core.long_work import importing
from skillpress.core.redaction import hide_secrets_of_tracebacks, without_secrets
from skillpress.core.storage import make_folder, named_disk_errors, write_text
from skillpress.experiment.params import Params, check_params
from skillpress.pipeline.exit_codes import leave
from skillpress.pipeline.tracking.mirrors import trackers

SETTING = "SKILLPRESS_TRACES"
"""Set in infra/settings.env. It is not a parameter: recording affects no result, so it reruns nothing."""


REPORTS = Path(".dvc/tmp/stages")
"""The folder with the ids and steps of unfinished runs, in files named after the stage."""
RUN, KEPT = ".run", ".reports"
"""Suffixes of the files with ids and steps. The first line of the steps is the key."""


class TrackingError(RuntimeError):
    """Something that a stage reported could not be recorded."""


class Recorder:
    """The stage's side: the calls of ``StageRun`` (``runs.py``), none of which waits."""

    def __init__(self, stage: str, params: Params, key: str, lock: int | None = None) -> None:
        """Start recording; the recording process finds or makes the runs of experiment and stage meanwhile.

        Args:
            key: a hash of all that affects the stage's result.
            lock: the descriptor of the stage's lock, which is held until everything is recorded.

        Raises:
            ParamsError: the setting for recorded episodes is not a number, or that for trackers is wrong.
        """
        trackers()
        self._most_traces = most_traces()
        self._kept, steps = kept_reports(stage, key)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, stage, key, str(self._kept), str(steps)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
            # It computes nothing: DeepSpeed, which transformers imports, shall not warn of a missing GPU.
            env={**os.environ, "DS_ACCELERATOR": "cpu"},
            pass_fds=() if lock is None else (lock,),
        )  # fmt: skip
        self._write(params.model_dump(mode="json"))

    @cached_property
    def run_id(self) -> str:
        """The id of the stage's run; waits until MLflow has it."""
        return str(self._read()["run_id"])

    def check(self) -> None:
        """Raise ``TrackingError`` if something reported so far cannot be recorded."""
        if self._process.poll() is not None:
            self._fail()

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        if step:
            with named_disk_errors(self._kept), self._kept.open("a", encoding="utf-8") as file:
                print(json.dumps({"metrics": dict(metrics), "step": step}, default=float), file=file)
        self._call("log_metrics", metrics=dict(metrics), step=step)

    def log_summary(self, metrics: Mapping[str, float]) -> None:
        self._call("log_summary", metrics=dict(metrics))

    def log_file(self, path: Path) -> None:
        self._call("log_file", path=str(path))

    def log_episodes(self, rollouts: Path, policy: Path) -> None:
        """See ``StageRun.log_episodes``; does nothing if no episodes shall be recorded."""
        if self._most_traces:
            self._call("log_episodes", rollouts=str(rollouts), policy=str(policy), most=self._most_traces)

    def register_policy(self, folder: Path) -> None:
        self._call("register_policy", folder=str(folder))

    def log_parts(self, parts: Mapping[str, str]) -> None:
        self._call("log_parts", parts=dict(parts))

    def log_error(self, trace: str) -> None:
        self._call("log_error", trace=trace)

    def finish(self, status: str) -> None:
        """End the run when everything is recorded; ``TrackingError`` if something could not be."""
        self._call("finish", status=status)
        assert self._process.stdin is not None
        self._process.stdin.close()
        _ = self.run_id
        if self._process.wait():
            self._fail()
        self._kept.unlink(missing_ok=True)
        if status == "FINISHED":
            self._kept.with_suffix(RUN).unlink(missing_ok=True)

    def _call(self, name: str, **arguments: Any) -> None:
        self._write({"call": name, "arguments": arguments})

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            print(json.dumps(message, default=float), file=self._process.stdin, flush=True)
        except (BrokenPipeError, ValueError):  # ValueError: the recorder failed before, so the pipe is closed
            self._fail()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        message: dict[str, Any] = json.loads(line) if line else {}
        if "run_id" not in message:
            raise TrackingError(message.get("error", "the recorder of MLflow's runs ended; see above"))
        return message

    def _fail(self) -> None:
        _ = self.run_id  # if the run could not even be opened, this raises the reason
        self._read()


def most_traces() -> int:
    """The most episodes of a stage that become traces; ``ParamsError`` if it is not a number."""
    value = os.environ.get(SETTING, "0")
    if not value.isdecimal():
        raise ParamsError(f"{SETTING} is {value!r}; must be a whole number; 0 means no traces")
    return int(value)


def kept_reports(stage: str, key: str) -> tuple[Path, int]:
    """(the file of the steps that an unfinished run with this key has reported, their number)."""
    path = REPORTS / f"{stage}{KEPT}"
    make_folder(path.parent)
    with named_disk_errors(path):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a killed stage may leave half a line
        if not whole.startswith(f"{key}\n"):
            whole = f"{key}\n"
        if whole != text:
            write_text(path, whole)
    return path, whole.count("\n") - 1


def main(stage: str, key: str, kept: str, steps: str) -> int:
    """The recording process: reads the parameters, then calls, until the stage closes the pipe.

    Args:
        kept: the file of the steps that predecessors have reported.
        steps: their number; further ones come through the pipe.
    """
    with importing("MLflow"):
        import mlflow.store.tracking.sqlalchemy_store  # noqa: F401  the client imports it, outside of the block
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError

        from skillpress.pipeline.tracking.runs import StageRun

    lines = (line for line in sys.stdin if line.endswith("\n"))  # a killed stage may leave half a line
    first = next(lines, None)
    if first is None:
        return 0
    params = check_params(json.loads(first), "the stage's parameters")
    replies, sys.stdout = sys.stdout, sys.stderr  # output of libraries must not mix with replies
    unfinished = Path(kept).with_suffix(RUN)
    try:
        known = unfinished.read_text(encoding="utf-8") if unfinished.exists() else None
        with closing(StageRun(stage, params, key, known)) as run:
            write_text(unfinished, run.run_id)
            _reply(replies, run_id=run.run_id)
            for line in Path(kept).read_text(encoding="utf-8").splitlines()[1 : int(steps) + 1]:
                run.log_metrics(**json.loads(line))  # steps that were recorded are passed over
            for line in lines:
                message = json.loads(line)
                getattr(run, message["call"])(**message["arguments"])
    except (MlflowException, SQLAlchemyError, UserError, OSError) as error:
        why = str(error).partition("\n")[0] or type(error).__name__
        _reply(replies, error=without_secrets(f"{stage}'s run in MLflow: {why}"))
        return 1
    return 0


def _reply(replies: TextIO, **message: str) -> None:
    with suppress(BrokenPipeError):  # the stage was killed; its lines are recorded all the same
        print(json.dumps(message), file=replies, flush=True)


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    set_up()
    leave(main(*sys.argv[1:]))
