"""``skillpress skills --write``: sessions become folders with a SKILL.md that coding agents read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from skillpress.cli.command import main
from skillpress.cli.viewing.found import skills_page
from skillpress.core.errors import UserError
from skillpress.reports.skill_files.evidence import SkillEvidence
from skillpress.skills.library.files import EVIDENCE_FILE
from tests.support.skills.scripted_sessions import (
    Session,
    claude_code_lines,
    record_of,
    sessions,
    write_sessions,
)

SKILLS = {"grep-sed-patch-pytest", "hatch-towncrier-twine", "pip-uv-diff"}
Make = Callable[..., dict[str, str]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """``make(records, ...)``: the text of each SKILL.md by its folder's name."""

    def run(records: Sequence[Any], *options: str) -> dict[str, str]:
        log = write_sessions(tmp_path / "log.jsonl", records)
        asked = ["skills", str(log), "--write", str(tmp_path / "skills"), "--output", str(tmp_path / "page")]
        assert main([*asked, *options]) == 0
        return read(tmp_path / "skills")

    return run


def read(folder: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in sorted(folder.glob("*/SKILL.md"))}


def evidence(folder: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in (folder / "skills").glob(f"*/{EVIDENCE_FILE}")}


def test_the_hashes_are_of_the_runs_that_used_the_skill(make: Make, tmp_path: Path) -> None:
    played = sessions(90, noise=0.1)
    make([record_of(it) for it in played])
    found = SkillEvidence.read(tmp_path / "skills" / "pip-uv-diff" / EVIDENCE_FILE)
    used = {it.task for it in played if "pip uv diff" in " ".join(it.programs)}
    assert len(found.tasks) == len(used) < len({it.task for it in played})
    assert all(found.has(found.tasks, task) for task in used) and not found.has(found.tasks, "task-9999")
    text = (tmp_path / "skills" / "pip-uv-diff" / EVIDENCE_FILE).read_text()
    lines = [line for line in text.splitlines() if not re.fullmatch(r'  "[0-9a-f]{16}",?', line)]
    told = ["{", ' "schema": "skillpress.evidence/1",', f' "salt": "{found.salt}",', ' "tasks": [', " ],"]
    assert lines == [*told, ' "sentences": [', " ],", ' "repositories": []', "}"], "nothing but hashes"


def records(count: int = 90, **more: Any) -> list[dict[str, Any]]:
    return [record_of(session, **more) for session in sessions(count, noise=0.1)]


def test_the_planted_routines_become_skills_and_the_decoys_do_not(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make(records(150))
    assert set(found) == SKILLS
    for name, text in found.items():
        _, front, body = text.split("---\n", 2)
        told = yaml.safe_load(front)
        assert told["name"] == name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= 64
        assert 1 <= len(told["description"]) <= 1024 and set(told) == {"name", "description"}
        assert body.count("\n") < 500
    fix = found["grep-sed-patch-pytest"]
    assert "Please fix the failing test of <text> in the parser." in fix
    assert "1. grep: `grep -rn <text> src`\n2. sed: `sed -n '1,80p' <file>`" in fix
    assert "4. pytest: `pytest <file> -q`" in fix
    for fact in ("distinct tasks", "bits saved", "**Bound:**", "95% for this skill alone", "hash "):
        assert fact in fix.partition("## Evidence")[2]
    passed = dict(pl.read_csv(tmp_path / "page" / "passed_over.csv").select("routine", "why").iter_rows())
    assert passed["rm → cmake → ctest"].startswith("goes with failure")
    assert any("random order" in why for why in passed.values())
    assert "passed over: rm → cmake → ctest: goes with failure" in capsys.readouterr().out


def test_the_page_shows_each_skill_as_its_file_is_beside_runs_with_the_uses_highlighted(
    make: Make, tmp_path: Path
) -> None:
    make(records())
    edited = tmp_path / "skills" / "pip-uv-diff" / "SKILL.md"
    edited.write_text(edited.read_text() + "My <own> advice.\n")
    make(records())
    page = (tmp_path / "page" / "skills.html").read_text()
    assert skills_page(tmp_path / "skills") == tmp_path / "skills" / ".." / "page" / "skills.html"
    shown = page.partition('<section id="written">')[2].partition("</section>")[0]
    assert shown.count('<div class="beside">') == len(SKILLS) and "My &lt;own&gt; advice." in shown
    fix = shown[shown.index(">grep-sed-patch-pytest<") :].partition('<h3 id="w')[0]
    used = fix.partition('<div class="frame learned">')[2].partition('<div class="frame')[0]
    assert re.findall(r"<bdi>(\w+)</bdi></span><div", used) == ["grep", "sed", "patch", "pytest"]
    (tmp_path / "page" / "skills.html").unlink()
    with pytest.raises(UserError, match=r"the page of these skills, .* does not exist"):
        skills_page(tmp_path / "skills")


def test_a_routine_of_few_runs_or_of_one_task_is_passed_over(make: Make, tmp_path: Path) -> None:
    rare = [record_of(Session("x", "Do.", (("jq", "jq ."), ("tee", "tee a"), ("wc", "wc a")) * 4, True))] * 8
    found = make([*records(), *rare])
    passed = dict(pl.read_csv(tmp_path / "page" / "passed_over.csv").select("routine", "why").iter_rows())
    assert set(found) == SKILLS
    assert {why for routine, why in passed.items() if "jq" in routine} == {"in one task only"}
    assert not make(records(), "--min-runs", "80").keys() - SKILLS
    passed = dict(pl.read_csv(tmp_path / "page" / "passed_over.csv").select("routine", "why").iter_rows())
    assert any("--min-runs" in why for why in passed.values())


def test_at_most_so_many_skills_are_written(make: Make) -> None:
    assert len(make(records(), "--max", "1")) == 1


def test_the_same_logs_change_no_byte(make: Make, tmp_path: Path) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in (tmp_path / "skills").rglob("*") if path.is_file()}

    make(records())
    before = files()
    make(records())
    assert files() == before and len(before) == 8
    (tmp_path / "skills" / "pip-uv-diff" / EVIDENCE_FILE).unlink()
    make(records())
    assert files() == before, "hashes that are gone are written again"


def test_grown_logs_update_what_has_grown_and_nothing_that_was_edited(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = make(records())
    hashes = evidence(tmp_path)
    edited = tmp_path / "skills" / "pip-uv-diff" / "SKILL.md"
    edited.write_text(edited.read_text() + "My own advice.\n")
    own = tmp_path / "skills" / "mine" / "SKILL.md"
    own.parent.mkdir()
    own.write_text("mine")
    release = [it for it in sessions(150, seed=1, noise=0.1) if "release" in it.message and it.success]
    grown = make([*records(), *(record_of(it) for it in release)])
    assert grown["mine"] == "mine" and grown["pip-uv-diff"] == first["pip-uv-diff"] + "My own advice.\n"
    assert grown["grep-sed-patch-pytest"] == first["grep-sed-patch-pytest"]
    assert grown["hatch-towncrier-twine"] != first["hatch-towncrier-twine"]
    changed = {name for name, text in evidence(tmp_path).items() if text != hashes[name]}
    assert changed == {"hatch-towncrier-twine"}, "the hashes are of the same uses as the text"
    changes = (tmp_path / "skills" / "CHANGELOG.md").read_text()
    assert changes.count("## Logs") == 2 and "- Updated: hatch-towncrier-twine\n" in changes
    assert "pip-uv-diff: not changed, because it was edited" in capsys.readouterr().out


def test_unknown_outcomes_are_said_to_be_unknown(make: Make) -> None:
    found = make(records(outcome=False))
    assert set(found) >= SKILLS
    assert "**Success:** unknown" in found["pip-uv-diff"]


def labels(path: Path, played: Sequence[Session]) -> Path:
    rows = [f"{number},{str(it.success).lower()}" for number, it in enumerate(played)]
    path.write_text("\n".join(["number,success", *rows]) + "\n")
    return path


def test_outcomes_of_a_label_file_update_the_evidence_and_reject_what_goes_with_failure(
    make: Make, tmp_path: Path
) -> None:
    played = sessions(150, noise=0.1)
    log = [record_of(it, outcome=False, number=number) for number, it in enumerate(played)]
    assert "rm-cmake-ctest" in make(log)
    told = make(log, "--outcomes", str(labels(tmp_path / "labels.csv", played)))
    assert "difference of" in told["pip-uv-diff"].partition("**Success:**")[2]
    changes = (tmp_path / "skills" / "CHANGELOG.md").read_text()
    assert "- Updated: " in changes and "- No longer chosen: rm-cmake-ctest\n" in changes
    before = (tmp_path / "skills" / "CHANGELOG.md").read_bytes()
    make(log, "--outcomes", str(tmp_path / "labels.csv"))
    assert (tmp_path / "skills" / "CHANGELOG.md").read_bytes() == before


def test_the_last_test_command_decides_the_outcome(make: Make, tmp_path: Path) -> None:
    log = []
    for session in sessions(150, noise=0.1):
        record = record_of(session, outcome=False)
        record["messages"][-1]["content"] = "1 passed" if session.success else "1 failed"
        function = record["messages"][-2]["tool_calls"][0]["function"]
        function["arguments"] = json.dumps({"command": "tox -q"})
        log.append(record)
    found = make(log, "--last-call", "tests")
    assert set(found) == SKILLS and "difference of" in found["pip-uv-diff"].partition("**Success:**")[2]


def test_a_routine_that_repeated_tasks_make_is_passed_over_with_its_reason(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = Session("x", "Do.", (("jq", "jq ."), ("tee", "tee a"), ("wc", "wc a")), True)
    assert not make([record_of(same)] * 40)
    why = "saves bits only by repeats: 40 runs are 1 distinct pairs of task and steps"
    assert f"passed over: jq → tee → wc: {why}" in capsys.readouterr().out
    (row,) = pl.read_csv(tmp_path / "page" / "passed_over.csv").iter_rows(named=True)
    assert row["why"] == why and row["uses"] == 40 and row["tasks"] == 1 and row["bits_saved"] < 0


def test_a_forked_session_counts_once(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number, session in enumerate(sessions(60, noise=0.1)):
        own = claude_code_lines(session, f"s{number}")
        more = claude_code_lines(Session("", "", (("echo", "echo bye"),), True), f"fork{number}", own)
        write_sessions(folder / f"a{number}.jsonl", own)
        write_sessions(folder / f"b{number}.jsonl", more)
    for name, files in (("once", "a*.jsonl"), ("forked", "*.jsonl")):
        paths = [str(path) for path in sorted(folder.glob(files))] if name == "once" else [str(folder)]
        assert main(["skills", *paths, "--write", str(tmp_path / name), "--output", str(tmp_path / "p")]) == 0
    once, forked = read(tmp_path / "once"), read(tmp_path / "forked")
    assert set(once) >= SKILLS and set(once) == set(forked)
    for name in once:
        uses = [re.search(r"\*\*Uses:\*\* \d+ in \d+ of", text[name]) for text in (once, forked)]
        assert uses[0] is not None and uses[1] is not None and uses[0][0] == uses[1][0]


SECRETS = {
    "key": "sk-ant-api03-Zx81Kq0Lm22Pp7", "password": "hunter2pass", "mail": "jane.doe@corp.example",
    "person": "janedoe77", "token": "ghp_Ab3dE5gH7jK9mN1pQ3sT5", "aws": "AKIAIOSFODNN7EXAMPLE",
    "hex": "9f86d081884c7d659a2feaa0c55ad015", "host": "10.20.30.40", "six": "2001:db8:85a3::8a2e:370:7334",
    "phone": "+49 170 1234567", "hook": "T0AB1/B0CD2/x9y8z7", "cookie": "c00k1e-jar", "pass": "s3cret wörd",
}  # fmt: skip
LEAKS = (
    "export API_KEY={key}", "mysql -u admin -p{password} -h {host}", "git log --author {mail}",
    "cat /home/{person}/notes.md /Users/{person}/a C:\\Users\\{person}\\b", "curl -u admin:{password} {host}",
    "deploy --password {password} --token '{token}'", "aws configure set {aws}", "echo {hex}",
    "ssh {person}@buildbox", "mail to {person}@{host}",
    "git config user.name {person}", "cat ~{person}/x C:/Users/{person}/y",
    "docker login -u {person} -p {password} r.example", "echo {password} | sudo -S true", "ping {six}",
    "redis-cli -a {password}", "curl -H 'Cookie: {cookie}' -u '{person}:{pass}' x", "echo call {phone}",
    "curl https://hooks.slack.com/services/{hook}", "echo machine x password {password}",
)  # fmt: skip


def test_no_planted_secret_enters_a_file(tmp_path: Path) -> None:
    folder = tmp_path / SECRETS["person"]
    folder.mkdir()
    leak = " ; ".join(LEAKS).format(**SECRETS)
    written = []
    for number, session in enumerate(sessions(60, noise=0.0)):
        commands = tuple((name, f"{line} # {leak}") for name, line in session.commands)
        record = record_of(session, model=leak, extra=leak)
        record["task_id"] += leak
        record["messages"][0]["content"] += f" Use this: {leak}"
        for place, (message, said) in enumerate(
            zip(record["messages"][1::2], record["messages"][2::2], strict=True)
        ):
            function = message["tool_calls"][0]["function"]
            function["arguments"] = json.dumps({"command": commands[place][1], SECRETS["token"]: leak})
            if place % 2:
                function["name"] = f"run {SECRETS['token']}"
            said["content"] = leak
        written.append({**record, "id": f"{number} {leak}"})
    log = write_sessions(folder / "log.jsonl", written)
    asked = ["skills", str(log), "--write", str(tmp_path / "skills"), "--output", str(tmp_path / "page")]
    assert main([*asked, "--words", "none"]) == 0 and main([*asked]) == 0
    texts = [path.read_text() for path in (tmp_path / "skills").rglob("*") if path.is_file()]
    names = [path.name for path in (tmp_path / "skills").rglob("*")]
    assert evidence(tmp_path).keys() == read(tmp_path / "skills").keys() != set()
    for text in [*texts, *names, (tmp_path / "page" / "passed_over.csv").read_text()]:
        assert not [name for name, secret in SECRETS.items() if secret.lower() in text.lower()]
