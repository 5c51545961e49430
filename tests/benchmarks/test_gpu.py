"""The measurements for one GPU: their parts, what becomes of parts that fail, and the page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.__main__ import main
from benchmarks.gpu.page import page
from benchmarks.gpu.plan import CEILING, FOLDER, MOST_SECONDS, Part, full, tiny
from benchmarks.gpu.runner import Runner, last_json, run_all
from skillpress.core.storage import read_json

HERE = {"processor": "here"}
ABOUT = {"machine": HERE, "revision": "abc"}
COUNTS = """
import json, pathlib, sys
ran = pathlib.Path(sys.argv[1]) / "ran"
ran.write_text((ran.read_text() if ran.exists() else "") + "once ")
print("a library speaks")
print(json.dumps({"ran": ran.read_text(), "options": sys.argv[2:], "nothing": float("nan")}, indent=2))
"""
FAILS = "import sys; print('it was found', file=sys.stderr); sys.exit(3)"
STAYS = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1], "child").write_text(str(child.pid))
time.sleep(600)
"""
LINGERS = """
import time
print('{"a": 1}', flush=True)
time.sleep(600)
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A runner beside programs that parts may name."""
    for name, source in {"counts": COUNTS, "fails": FAILS, "stays": STAYS, "lingers": LINGERS}.items():
        (tmp_path / f"{name}_here.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Runner(tmp_path / "kept", HERE, {})


def test_each_part_takes_five_minutes_at_most_predicts_and_is_there_at_tiny_size() -> None:
    assert all(part.seconds <= MOST_SECONDS == 300 and part.prediction for part in full())
    assert full()[0].name == "whole", "a training to its end comes first"
    kinds = [{part.name.rstrip("0123456789") for part in parts} for parts in (full(), tiny())]
    assert kinds[0] == kinds[1]
    for parts in (full(), tiny()):
        names = [part.name for part in parts]
        assert len(set(names)) == len(names)
        assert all(part.start_of in names[: names.index(part.name)] for part in parts if part.start_of)


def test_a_part_that_finished_is_not_run_again_until_its_command_or_its_machine_changes(
    runner: Runner,
) -> None:
    part = Part("counts", "runs", ("counts_here", FOLDER), seconds=60)
    first = runner.run(part)
    assert first["result"] == {"ran": "once ", "options": [], "nothing": None}
    assert runner.run(part) == first
    other = Part("counts", "runs", ("counts_here", FOLDER, "--more"), seconds=60)
    assert runner.run(other)["result"]["options"] == ["--more"]
    elsewhere = Runner(runner.folder, {"processor": "there"}, {})
    assert elsewhere.place(part) != runner.place(part)


def test_the_measured_ceiling_is_given_to_a_part_and_left_out_if_it_is_unknown(runner: Runner) -> None:
    command = ("counts_here", FOLDER, "--teraflops", CEILING, "--sides")
    part = Part("training", "step", command, seconds=60)
    assert runner.run(part)["result"]["options"] == ["--sides"]
    runner.done["ceilings"] = {"result": {"teraflops": 700.5}}
    again = Part("again", "step", command, seconds=60)
    assert runner.run(again)["result"]["options"] == ["--teraflops", "700.5", "--sides"]


def test_a_part_that_fails_leaves_its_last_words_and_the_others_run(runner: Runner, tmp_path: Path) -> None:
    parts = [
        Part("fails", "failing", ("fails_here",), seconds=60),
        Part("lacks", "lacking", ("counts_here", FOLDER), seconds=60, package="no-such-package"),
        Part("follows", "following", ("counts_here", FOLDER), seconds=60, start_of="fails"),
        Part("counts", "counting", ("counts_here", FOLDER), seconds=60),
    ]
    records: list[dict[str, Any]] = []
    run_all(parts, tmp_path / "kept", ABOUT, records.append)
    assert [len(record["parts"]) for record in records] == [1, 1, 2, 2, 3, 3, 4, 4], "before and after each"
    found = records[-1]["parts"]
    assert found["fails"]["failed"] == "ended with exit code 3"
    assert found["fails"]["last_words"][-1] == "it was found"
    assert found["lacks"]["failed"] == "no-such-package is not installed"
    assert found["follows"]["failed"] == "fails did not finish"
    assert found["counts"]["result"]["ran"] == "once "


def test_an_interrupt_is_recorded_with_the_parts_that_were_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchmarks.gpu.runner.run_within", interrupted)
    parts = [Part(name, name, ("counts_here", FOLDER), seconds=60) for name in ("first", "second", "third")]
    done = Runner(tmp_path / "kept", HERE, {}).place(parts[2])
    done.mkdir(parents=True)
    (done / "found.json").write_text('{"result": 1}')
    records: list[dict[str, Any]] = []
    with pytest.raises(KeyboardInterrupt):
        run_all(parts, tmp_path / "kept", ABOUT, records.append)
    found = records[-1]["parts"]
    assert [found[name].get("failed") for name in found] == ["interrupted", "not begun", None]


def test_a_part_that_is_stopped_after_its_result_counts(runner: Runner) -> None:
    part = Part("lingers", "lingering", ("lingers_here", FOLDER), seconds=5)
    assert runner.run(part)["result"] == {"a": 1}
    assert runner.run(part)["revision"] == runner.revision


def test_a_part_over_its_time_is_stopped_with_all_that_it_started(runner: Runner) -> None:
    part = Part("stays", "staying", ("stays_here", FOLDER), seconds=5)
    assert runner.run(part)["failed"] == "stopped after 5 seconds"
    child = int((runner.place(part) / "child").read_text())
    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline, f"process {child} was left behind"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("printed", "found"),
    [('{"a": 1}', {"a": 1}), ("[words]\n[\n1\n]", [1]), ("words", None), ('{"a": 1}\nwords', None)],
)
def test_the_json_at_the_end_is_read(printed: str, found: Any) -> None:
    assert last_json(printed) == found


def sampled(decoder: str, speeds: dict[str, float]) -> dict[str, Any]:
    """What ``benchmarks.local_engine`` prints, as far as the page reads it."""
    return {
        "tokens_per_second": speeds,
        "first_seconds": dict.fromkeys(speeds, 2.0),
        "prefill_share": dict.fromkeys(speeds, 0.25),
        "learner_apart": {
            form: {"mean_nats": 0.01, "largest_nats": None} for form in speeds if form != "transformers"
        },
        "setting": {"prompts": 64, "decoder": decoder},
    }


@pytest.mark.parametrize(
    ("decoder", "on_gpu", "said"),
    [
        ("static", True, "measured: the speed of the cache that grows 4.0 times with 64 rows"),
        ("growing", True, "not measured"),
        ("static", False, "not measured"),
    ],
)
def test_the_page_says_which_claims_are_measured(decoder: str, on_gpu: bool, said: str) -> None:
    part = {"what": "64 rows", "result": sampled(decoder, {"local": 400.0, "growing": 100.0})}
    record = {
        "tiny": not on_gpu, "machine": {"name": "H100"}, "versions": {"torch": "2"}, "date": "today",
        "revision": "abc", "parts": {"sampling_local_64": part, "lag": {"what": "lag", "failed": "late"}},
    }  # fmt: skip
    written = page(record)
    assert f"| the local engine's CUDA graphs | docs/engines.md | {said} |" in written
    assert "| 64 | local | 400 | 2.0 | 25% | 0.01, none |" in written
    assert "| `lag` | lag |  | late |  |" in written


def test_a_prediction_is_on_the_page_before_its_part_has_run(tmp_path: Path) -> None:
    part = Part("counts", "counting", ("counts_here", FOLDER), seconds=60, prediction="it counts to seven")
    records: list[dict[str, Any]] = []
    run_all([part], tmp_path, ABOUT, records.append)
    before = records[0]
    assert before["parts"]["counts"] == {
        "what": "counting", "failed": "runs", "last_words": [], "prediction": "it counts to seven",
    }  # fmt: skip
    about = {"tiny": True, "versions": {}, "date": "today"}
    assert "| `counts` | it counts to seven | runs |" in page({**about, **before})


def test_a_part_can_be_run_alone_and_what_others_found_stays(runner: Runner, tmp_path: Path) -> None:
    parts = [Part(name, name, ("counts_here", FOLDER, name), seconds=60) for name in ("first", "second")]
    records: list[dict[str, Any]] = []
    for name in ("second", "first"):
        run_all(parts, tmp_path / "kept", ABOUT, records.append, [name])
        if name == "second":
            assert records[-1]["parts"]["first"]["failed"] == "not begun"
    assert [part["result"]["options"] for part in records[-1]["parts"].values()] == [["first"], ["second"]]


def test_short_parts_of_the_plan_run_at_tiny_size_by_their_names(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--tiny", "--folder", str(tmp_path)]
    subprocess.run([*command, "draw", "ceilings"], cwd=repository, check=True, timeout=300)
    found = read_json(tmp_path / "gpu.json")["parts"]
    assert {name for name, part in found.items() if "result" in part} == {"draw", "ceilings"}
    same = found["draw"]["result"]["sizes"][0]["same_tokens"]
    assert same == {"engine": 4, "eager": 4, "compiled": 4}


def test_a_part_that_the_plan_does_not_have_is_refused_with_those_that_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu", "--tiny", "drawn"])
    with pytest.raises(SystemExit):
        main()
    assert "the plan has no part 'drawn'; its parts are whole, ceilings, " in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_all_parts_run_at_tiny_size_and_only_once(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu", "--tiny", "--folder", str(tmp_path)]
    run = subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE)
    try:
        assert run.communicate(timeout=1700)[0].decode().strip() == str(tmp_path / "gpu.md")
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)  # it stops its part, which has a session of its own
            run.wait(60)
    record = read_json(tmp_path / "gpu.json")
    missing = {name: part["failed"] for name, part in record["parts"].items() if "failed" in part}
    assert missing in ({}, {"sampling_vllm_4": "vllm is not installed"}), record
    assert set(record["parts"]["sampling_local_4"]["result"]["tokens_per_second"]) == {
        "local", "transformers", "growing",
    }  # fmt: skip
    learned = record["parts"]["learning"]["result"]
    assert [learned[name]["training_steps"] for name in ("grpo", "segcost")] == [4, 4]
    assert len(record["parts"]["lag"]["result"]["runs"]) == 2
    whole, updates = (record["parts"][name]["result"] for name in ("whole", "update"))
    assert [run["equal_bytes"] for run in whole["runs"].values()] == [True, True]
    assert not [form for form in updates["forms"].values() if "failed" in form]
    again = record["parts"]["twice"]["result"]["forms"]
    assert all(form["equal"] for form in again.values()), "on a CPU"
    assert record["parts"]["training"]["result"]["update_share_of_ceiling"].keys() == {"skillpress"}
    written = (tmp_path / "gpu.md").read_text()
    assert "TRL takes" in written and "nothing about a GPU" in written
    times = {name: part.get("date") for name, part in record["parts"].items()}
    subprocess.run(command, cwd=repository, check=True, timeout=300, stdout=subprocess.DEVNULL)
    again = read_json(tmp_path / "gpu.json")
    assert {name: part.get("date") for name, part in again["parts"].items()} == times
