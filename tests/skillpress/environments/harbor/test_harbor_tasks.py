"""Tasks in Harbor's format: both forms of task.toml, what is refused by name, and Dockerfiles."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from skillpress.core.errors import ParamsError, TaskError
from skillpress.environments.harbor.dockerfile import PATH, Copied, archive, read_dockerfile
from skillpress.environments.harbor.parameters import HarborParameters
from skillpress.environments.harbor.task_files import read_task
from skillpress.environments.section import SplitSizes
from tests.support.environments.harbor_tasks import DOCKERFILE, NEW, OLD, harbor_tasks, write_task
from tests.support.rollouts import asking


def section(tasks: Path, **changes: Any) -> HarborParameters:
    given = {"name": "harbor", "max_calls": 5, "tasks": str(tasks), "root": "machine", "agent": "oracle"}
    return HarborParameters(**{**given, **changes})


def ids(params: HarborParameters, count: int) -> list[str]:
    return sorted(task.task_id for task in params.make_tasks(SplitSizes(0, 0, count), 0))


def test_both_forms_of_task_toml_say_the_same(tmp_path: Path) -> None:
    new = read_task(write_task(tmp_path / "new", settings=NEW.format(name="new"))).settings
    old = read_task(write_task(tmp_path / "old", settings=OLD)).settings
    assert (new.schema_version, old.schema_version) == ("1.4", "1.0")
    assert new.environment.memory_mb == old.environment.memory_mb == 512
    assert old.environment.storage_mb == 512 and new.agent.timeout_sec == old.agent.timeout_sec == 60


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('[environment]\nmemory = "much"', r"task\.toml: environment\.memory is 'much': .*2G or 512M"),
        ("[agent]\ntimeout_sec = -1", r"task\.toml: agent\.timeout_sec is -1: .*greater than 0"),
        ("[environment]\nnetwork_mode = 'open'", r"environment\.network_mode is 'open'"),
        ("[agent", r"task\.toml: the task cannot be read"),
        ("[[steps]]\nname = 'one'", r"task\.toml: .*steps/one/instruction\.md"),
        ("[[steps]]\nname = '../up'", r"task\.toml: steps\.0\.name is '\.\./up'"),
        ("multi_step_reward_strategy = 'best'", r"multi_step_reward_strategy is 'best'"),
    ],
)
def test_an_error_names_the_file_the_field_and_its_value(settings: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=said):
        read_task(write_task(tmp_path / "wrong", settings=settings))


def test_a_task_without_tests_is_refused(tmp_path: Path) -> None:
    (write_task(tmp_path / "a") / "tests" / "test.sh").unlink()
    with pytest.raises(TaskError, match=r"a/tests/test\.sh: is missing"):
        ids(section(tmp_path), 1)


NEEDS = {
    "[environment]\ngpus = 1": "gpus",
    "[environment]\nallow_internet = true": "network",
    "[agent]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.org']": "network",
    "[verifier]\nuser = 'checker'": "user",
    "[verifier]\nenvironment_mode = 'separate'": "separate verifier",
    "[environment]\nos = 'Windows'": "windows",
    "[[environment.mcp_servers]]\nname = 'a'": "mcp_servers",
    "[environment.healthcheck]\ncommand = 'true'": "healthcheck",
    "[environment.env]\nKEY = '${NOT_SET_ANYWHERE}'": "variable NOT_SET_ANYWHERE",
    "[environment]\ndocker_image = 'a/b:1'": "docker_image",
}


def test_needs_that_cannot_be_met_are_counted_by_name_before_anything_runs(tmp_path: Path) -> None:
    harbor_tasks(tmp_path, 5)
    for number, settings in enumerate(NEEDS):
        write_task(tmp_path / f"needs-{number:02}", settings=settings)
    compose = write_task(tmp_path / "needs-compose") / "environment" / "docker-compose.yaml"
    compose.write_text("services: {}")
    write_task(tmp_path / "needs-run", dockerfile=f"{DOCKERFILE}RUN apt-get update\n")
    with pytest.raises(TaskError, match="needs of 12 of 17 tasks cannot be met") as refused:
        ids(section(tmp_path), 5)
    wanted = {**dict.fromkeys([*NEEDS.values(), "docker-compose", "Dockerfile RUN"], 1), "network": 2}
    for need, count in wanted.items():
        assert f"{need} {count} (needs-" in str(refused.value)
    left = section(tmp_path, leave_out=True)
    assert len(ids(left, 5)) == 5 and left.dropped() == {"harbor": {**wanted, "kept": 5}}
    assert section(tmp_path).dropped() is None
    offline = section(tmp_path, leave_out=True, play_without=["network"])
    assert offline.dropped() == {"harbor": {**{name: 1 for name in wanted if name != "network"}, "kept": 7}}


def test_unknown_fields_have_no_effect_and_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        write_task(tmp_path / name, settings=f"colour = 'red'\n{NEW.format(name=name)}future = 1\n")
    assert ids(section(tmp_path), 2) == ["a", "b"]
    assert "colour 2, environment.future 2" in caplog.text


def test_tasks_are_drawn_by_the_seed_and_their_files_are_inputs(tmp_path: Path) -> None:
    params = section(harbor_tasks(tmp_path, 6))
    tasks = list(params.make_tasks(SplitSizes(3, 1, 2), 1))
    params.check_tasks(tasks)
    assert [task.split for task in tasks] == ["train"] * 3 + ["validation"] + ["test"] * 2
    assert tasks == list(params.make_tasks(SplitSizes(3, 1, 2), 1))
    assert all(set(task.spec) == {"id", "prompt"} for task in tasks)
    before = params.inputs()
    (tmp_path / "greet-00" / "tests" / "test.sh").write_text("exit 1\n")
    assert before != params.inputs() and set(before) == {"environment.tasks"}
    with pytest.raises(TaskError, match=r"has 6 tasks, of which 6 are left for tasks\.test"):
        ids(params, 7)


def test_a_function_and_a_missing_program_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harbor_tasks(tmp_path / "tasks", 1)
    with pytest.raises(ValidationError, match="would not run in the task's root"):
        section(tmp_path, agent=None, run=f"{asking.HERE}:walk")
    with pytest.raises(ParamsError, match=r"'nowhere' is neither a folder nor machine nor build"):
        section(tmp_path / "tasks", root="nowhere").make()
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ParamsError, match="needs buildah, which is not installed"):
        section(tmp_path / "tasks", root="build").make()


FILE = r"""
FROM ubuntu:24.04 AS first
COPY gone.txt /gone
FROM ubuntu:24.04
ARG PLACE=srv
ENV DATA=/data MODE="a b"
ENV OLD form
ENV PATH=/opt/bin:$PATH
WORKDIR /$PLACE
WORKDIR app
# COPY commented.txt /
RUN apt-get install -y \
    # within
    curl && \
    true
COPY --chown=root:root one.txt \
     two.txt sub/
COPY ["three.txt", "${DATA}/named.txt"]
COPY folder .
COPY *.cfg /etc/app
"""


def test_a_dockerfile_gives_its_folder_its_variables_and_what_it_copies(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(FILE)
    found = read_dockerfile(tmp_path / "Dockerfile")
    assert found.folder == "/srv/app" and found.built == ["RUN"] and found.user == "root"
    path = f"/opt/bin:{PATH}"
    assert found.variables == {"DATA": "/data", "MODE": "a b", "OLD": "form", "PATH": path}
    assert found.copied == [
        Copied(["one.txt", "two.txt"], "/srv/app/sub", True),
        Copied(["three.txt"], "/data/named.txt", False),
        Copied(["folder"], "/srv/app", True),
        Copied(["*.cfg"], "/etc/app", True),
    ]
    for name in ("one.txt", "two.txt", "three.txt", "a.cfg", "b.cfg", "folder/in/deep.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    with tarfile.open(fileobj=io.BytesIO(archive(found.copied, tmp_path, ["/logs"]))) as tar:
        files = sorted(member.name for member in tar if member.isfile())
    assert files == [
        "data/named.txt", "etc/app/a.cfg", "etc/app/b.cfg", "srv/app/in/deep.txt", "srv/app/sub/one.txt",
        "srv/app/sub/two.txt",
    ]  # fmt: skip
    (tmp_path / "one.txt").unlink()
    with pytest.raises(TaskError, match=r"COPY one\.txt: there is no such file"):
        archive(found.copied, tmp_path, [])


@pytest.mark.parametrize(
    "line", ["COPY --from=first /a /b", "COPY <<EOF /a\ntext\nEOF", "ADD a.tar /", "RUN true"]
)
def test_what_only_a_build_can_do_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM a\n{line}\nWORKDIR /app\n")
    found = read_dockerfile(tmp_path / "Dockerfile")
    assert found.built == [line.split()[0]] and found.folder == "/app" and not found.copied
