"""The command as users call it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from skillpress.cli.command import main
from skillpress.pipeline import exit_codes
from tests.support.integrations.trace_records import chat
from tests.support.reports.viewer_samples import write_all


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    write_all(folder)
    (folder / "page.html").write_text("<!doctype html>")
    return folder


@pytest.mark.kills
def test_it_answers_at_the_address_that_it_prints_until_ctrl_c(samples: Path, repository: Path) -> None:
    files = [str(samples / "ordinary.parquet"), str(samples / "hostile.parquet")]
    command = [sys.executable, "-m", "skillpress.cli.command", "view", *files, "--no-browser"]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        told = re.fullmatch(r"108 episodes of 2 files: (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)\n", line)
        assert told, line
        with urlopen(told[1] + "api/about", timeout=60) as answer:
            about = json.load(answer)
        assert [source["path"] for source in about["sources"]] == files
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0


@pytest.mark.kills
@pytest.mark.parametrize("named", ["skills", "skills/skills.html"])
def test_the_skills_page_of_any_agents_log_is_served_like_episodes(
    named: str, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(chat(id=str(n)))}\n" for n in range(9)))
    assert main(["skills", str(tmp_path / "log.jsonl"), "--output", str(tmp_path / "skills")]) == 0
    command = [sys.executable, "-m", "skillpress.cli.command", "view", named, "--no-browser"]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        told = re.fullmatch(r"the skills page skills/skills\.html: (http://\S+/) \(Ctrl-C ends it\)\n", line)
        assert told, line
        with urlopen(told[1], timeout=60) as answer:
            assert answer.read() == (tmp_path / "skills" / "skills.html").read_bytes()
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "view: nowhere: no such file or folder"),
        (["tasks.parquet"], "view: tasks.parquet: holds tasks, and rollouts are wanted"),
        (["ordinary.parquet", "--tokenizer", "."], "view: tokenizer.json: no such file"),
        (["page.html"], "view: no trace was found in page.html: "),
        (["dictionary.json"], "view: no trace was found in dictionary.json: "),
    ],
)
def test_a_mistake_is_one_clear_line(
    arguments: list[str], said: str, samples: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.chdir(samples)
    assert main(["view", *arguments]) == exit_codes.USER_ERROR
    error = capsys.readouterr().err
    assert error.startswith(said) and error.count("\n") == 1


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1"])
def test_a_port_that_is_none_is_refused(port: str, capsys) -> None:
    assert main(["view", f"--port={port}"]) == exit_codes.USER_ERROR
    assert "must be from 1 to 65535" in capsys.readouterr().err
