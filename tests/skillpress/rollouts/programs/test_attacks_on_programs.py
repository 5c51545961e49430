"""Attacks that programs can make and sandboxes cannot, or that end otherwise; the rest of the table in
attacks.md (sandbox) is tried by the same tests as for sandboxes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import psutil
import pytest

from skillpress.core.errors import ParamsError, UserError
from skillpress.core.trajectory import Task
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.rollouts.programs.endpoint import LARGEST_BODY, Endpoint
from skillpress.rollouts.sandbox import Limits, Sandbox
from skillpress.rollouts.sandbox.isolation import Kind
from tests.skillpress.environments.program.test_program_environment import TASKS, play, section
from tests.support.rollouts import asking
from tests.support.rollouts.attacking import ROOT, SECRET
from tests.support.rollouts.isolated import IsolatedSnippets

TRIED = {
    "infinite_loop": "test_a_program_that_ignores_its_end_is_gone_when_its_episode_is",
    "daemon": "test_a_program_that_ignores_its_end_is_gone_when_its_episode_is",
    "host_files": "test_only_what_the_command_names_is_there",
    "host_file_names": "test_only_what_the_command_names_is_there",
    "traps_in_the_folder": "test_whatever_an_episode_leaves_ends_with_it",
    "names_that_are_no_text": "test_whatever_an_episode_leaves_ends_with_it",
    "other_sockets": "test_netlink_lists_interfaces_and_no_other_protocol_is_there",
}
"""Rows of the table in attacks.md that a test of another name tries; others are ``test_attack_ROW``."""
HELLO = {"messages": [{"role": "user", "content": "1"}], "max_tokens": 1}


ISOLATION: Kind = "bubblewrap"
"""What isolates the programs of the current test."""
GVISOR = pytest.param(
    "gvisor", marks=pytest.mark.skipif(shutil.which("runsc") is None, reason="gVisor's runsc is not on PATH")
)


@pytest.fixture(params=["bubblewrap", GVISOR])
def isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Try the test behind each isolation of programs."""
    monkeypatch.setattr(sys.modules[__name__], "ISOLATION", request.param)
    return str(request.param)


behind_each = pytest.mark.usefixtures("isolation")


def attack(code: str, limits: Limits | None = None) -> Any:
    with IsolatedSnippets(limits, ISOLATION) as program:
        return program.execute(dedent(code))


def isolated(code: str, verify: Any = f"{asking.HERE}:always", **changes: Any) -> ProgramParameters:
    return section([sys.executable, "-c", dedent(code)], verify, isolation=ISOLATION, **changes)


@behind_each
def test_settings_of_the_kernel_are_those_of_its_own_namespaces_as_in_a_sandbox() -> None:
    code = """
        import os
        written = []
        for folder, _, names in os.walk('/proc/sys'):
            for name in names:
                try:
                    os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                    written.append(os.path.join(folder, name))
                except OSError:
                    pass
        written
    """
    with Sandbox.start() as sandbox:
        of_namespaces = set(eval(sandbox.execute(dedent(code)).result or ""))
    written = set(eval(attack(code).result))
    assert "/proc/sys/kernel/core_pattern" not in written
    assert written <= of_namespaces or ISOLATION == "gvisor"  # whose settings are those of its own kernel


@pytest.mark.skipif(os.geteuid() != 0, reason="another user never has the host's root")
def test_a_program_of_root_runs_as_nobody() -> None:
    with IsolatedSnippets(None) as program, program.started("import time; time.sleep(3612)") as (_, _):
        users = []
        while not users:
            for process in psutil.process_iter(["cmdline", "uids"]):
                if (
                    any("3612" in part for part in process.info["cmdline"] or [])
                    and process.name() != "setpriv"
                ):
                    users.append(process.info["uids"].effective)
        assert set(users) == {65534}


@behind_each
def test_only_what_the_command_names_is_there(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    code = f"""
        import os
        found = []
        for place in {["/etc/shadow", "/root/.ssh", "/var", "/sys", __file__, str(tmp_path)]}:
            if os.path.exists(place):
                found.append(place)
        found, 'root' in open('/etc/passwd').read(), [n for n in os.listdir({str(ROOT)!r}) if n != '.venv']
    """
    of_its_own_kernel = ["/sys"] if ISOLATION == "gvisor" else []
    assert attack(code).result == f"({of_its_own_kernel}, False, [])"


@behind_each
def test_a_program_sees_its_task_without_the_hidden_field_and_no_file_of_tasks(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "a", "hidden": SECRET}))
    code = f"""
        import glob, os
        seen = str(dict(os.environ))
        for name in glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/environ'):
            try:
                seen += open(name).read()
            except OSError:
                pass
        assert 'SKILLPRESS_TASK' in seen and {SECRET[::-1]!r}[::-1] not in seen, seen
        assert not os.path.exists({str(tasks)!r})
    """
    task = Task("a", "program", 0, {"id": "a", "hidden": SECRET})
    (episode,) = play(isolated(code, tasks=str(tasks)), [task], rollouts=1)
    assert episode.won, episode.steps[-1].observation


@behind_each
def test_the_hosts_environment_is_not_inside_but_for_the_variables_that_are_passed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{SECRET}@host")
    monkeypatch.setenv("A_TOOLS_SETTING", "on")
    code = f"""
        import os
        assert {SECRET[::-1]!r}[::-1] not in str(os.environ)
        assert os.environ.get('A_TOOLS_SETTING') == 'on', dict(os.environ)
        assert os.getcwd() == os.environ['HOME'] == '/home/agent'
    """
    (episode,) = play(isolated(code, pass_variables=["A_TOOLS_SETTING"]), TASKS[:1], rollouts=1)
    assert episode.won, episode.steps[-1].observation
    with pytest.raises(ParamsError, match=r"environment\.pass_variables: NOT_SET is not set"):
        play(isolated(code, pass_variables=["NOT_SET"]), TASKS[:1], rollouts=1)


@behind_each
def test_netlink_lists_interfaces_and_no_other_protocol_is_there() -> None:
    code = """
        import socket
        opened = []
        for family in range(11, 60):
            for protocol in range(20):
                try:
                    socket.socket(family, socket.SOCK_RAW, protocol)
                    opened.append((family, protocol))
                except OSError:
                    pass
        opened, [name for _, name in socket.if_nameindex()]
    """
    assert attack(code).result == "([(16, 0)], ['lo'])"


@pytest.mark.parametrize(
    "spoils",
    ["os.chmod('/run/endpoint.sock', 0)", "os.unlink('/run/endpoint.sock')", "os.rename('/run', '/gone')"],
)
@behind_each
def test_a_program_cannot_take_the_endpoint_from_the_episodes_that_follow(spoils: str) -> None:
    code = f"""
        import os
        try:
            {spoils}
        except OSError:
            pass
        {ASKS}
    """
    episodes = play(isolated(code), TASKS, rollouts=1)
    assert [episode.won for episode in episodes] == [True] * 3, [e.outcome for e in episodes]


ASKS = """import json, urllib.request
        body = json.dumps({'messages': [{'role': 'user', 'content': '1'}], 'max_tokens': 1}).encode()
        headers = {'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}
        asked = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body, headers)
        urllib.request.urlopen(asked).read()"""


@behind_each
def test_a_forwarder_without_an_endpoint_is_no_failure_of_the_program() -> None:
    code = """
        import urllib.request
        urllib.request.urlopen('http://127.0.0.1:8000/v1/models')
    """
    assert (attack(code).error or "").startswith("lost: ")


@behind_each
def test_whatever_an_episode_leaves_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
        import os
        for depth in range(1300):
            os.mkdir('d' * 100)
            os.chdir('d' * 100)
        os.mkdir('closed', 0)
        os.mkfifo('fifo')
        os.symlink('/etc', 'link')
        open(b'\\xff', 'w').close()
    """
    short = Path(tempfile.mkdtemp(prefix="h-"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    (episode,) = play(isolated(code), TASKS[:1], rollouts=1)
    assert episode.outcome in ("won", "over_limits")  # deeper than any path can name counts as over the limit
    assert [path.name for path in short.iterdir() if "sandboxes" not in path.name] == []
    with pytest.raises(UserError, match="set TMPDIR to a folder with a shorter path"):
        Endpoint(Path("/tmp", "long" * 40, "socket"))


@behind_each
def test_a_program_that_ignores_its_end_is_gone_when_its_episode_is() -> None:
    code = """
        import os, signal, subprocess, time
        for number in set(range(1, 65)) - {9, 19, 32, 33}:
            signal.signal(number, signal.SIG_IGN)
        subprocess.Popen(['/usr/bin/env', '-i', 'setsid', 'sleep', '3611'])
        time.sleep(3600)
    """
    (episode,) = play(isolated(code, seconds=2.0), TASKS[:1], rollouts=1)
    assert episode.outcome == "out_of_time"
    assert not [p for p in psutil.process_iter(["cmdline"]) if "3611" in (p.info["cmdline"] or [])]


FLOODS = {
    "fork_bomb": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass",
    "many_processes": "import os, time\nwhile os.fork(): pass\ntime.sleep(1000)",
    "many_threads": "from threading import Thread\nfrom time import sleep\n"
    "while True: Thread(target=sleep, args=(1000,)).start()",
}


def over_processes(name: str) -> None:
    (episode,) = play(isolated(FLOODS[name], memory_mb=8192), TASKS[:1], rollouts=1)
    said = episode.steps[-1].observation
    # Whichever counts first: the watchdog at 512, or the kernel a little above.
    assert any(words in said for words in ("more than 512 processes", "BlockingIOError", "start new thread"))
    assert episode.outcome in ("over_limits", "crashed")


@behind_each
def test_attack_fork_bomb() -> None:
    over_processes("fork_bomb")


@behind_each
def test_attack_many_processes() -> None:
    over_processes("many_processes")


@behind_each
def test_attack_many_threads() -> None:
    if ISOLATION == "gvisor":  # the host cannot count threads; gVisor refuses more than the kernel's limit
        code = FLOODS["many_threads"].replace("(1000,)", "(1000,), daemon=True")
        assert "can't start new thread" in (attack(code).error or "")
    else:
        over_processes("many_threads")


@behind_each
def test_attack_descriptors() -> None:
    assert "Too many open files" in (attack("import os\nwhile True: os.pipe()").error or "")


@behind_each
def test_attack_inherited_descriptors(tmp_path: Path) -> None:
    code = """
        import os
        paths = [f'/proc/self/fd/{number}' for number in range(1024)]
        sorted({os.readlink(path).split('/')[-1] for path in paths if os.path.exists(path)})
    """
    with open(__file__) as held:
        os.set_inheritable(held.fileno(), True)
        outside_of_what_it_sees = ("['null', 'printed.txt']", "['null']")
        named_by_gvisor = "['host:[1]', 'host:[2]', 'host:[3]']"  # input, output and errors
        assert attack(code).result in (*outside_of_what_it_sees, named_by_gvisor)


FLOOD = "import os\nwhile True: os.write(1, bytes(1 << 20))"


@behind_each
def test_attack_output_flood() -> None:
    (episode,) = play(isolated(FLOOD), TASKS[:1], rollouts=1)
    assert episode.outcome in ("crashed", "over_limits")


@behind_each
def test_attack_output_flood_of_a_child() -> None:
    (episode,) = play(isolated(f"import os\nos.fork()\n{FLOOD}"), TASKS[:1], rollouts=1)
    assert episode.outcome in ("crashed", "over_limits")


@behind_each
def test_attack_standard_input() -> None:
    code = """
        import os, sys
        sys.stdin.read(), os.path.exists('/dev/tty') and os.open('/dev/tty', os.O_RDWR)
    """
    told = attack(code)
    assert told.result == "('', False)" or "OSError" in (told.error or "")


def test_a_kernel_of_its_own_is_refused_for_a_function() -> None:
    with pytest.raises(ValueError, match="gvisor works only for commands, but run names the function"):
        section("walk", isolation="gvisor")


@pytest.mark.parametrize("isolation", ["none", "bubblewrap", GVISOR])
def test_the_files_of_a_program_are_copied_into_its_folder(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("import tools.add\nprint(tools.add.total(2, 3))\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "add.py").write_text("def total(a, b): return a + b\n")
    (tmp_path / "answers.txt").write_text(SECRET)
    params = section([sys.executable, "agent.py"], isolation=isolation, files=["tools"])
    assert set(params.copied) == {"agent.py", "tools"}
    (episode,) = play(params, TASKS[:1], rollouts=1)
    assert episode.won and "5" in episode.steps[-1].observation
    with pytest.raises(ParamsError, match=r"environment\.files: 'nothing'"):
        play(section([sys.executable, "agent.py"], isolation=isolation, files=["nothing"]), TASKS[:1])


@pytest.mark.parametrize("isolation", ["none", "bubblewrap", GVISOR])
def test_a_script_of_the_lab_is_started_by_its_name_behind_a_dot(
    isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\necho started\n")
    (tmp_path / "agent.sh").chmod(0o755)
    (episode,) = play(section(["./agent.sh"], isolation=isolation), TASKS[:1], rollouts=1)
    assert episode.won and "started" in episode.steps[-1].observation


def test_python_is_this_interpreter_whatever_stands_first_on_the_hosts_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools that manage versions put scripts of that name there, which look for files that are not inside."""
    (tmp_path / "python").write_text("#!/bin/sh\nexec /nowhere/python\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    params = section(["python", "-c", "import sys; print(sys.prefix)"], isolation="bubblewrap")
    (episode,) = play(params, TASKS[:1], rollouts=1)
    assert episode.won and sys.prefix in episode.steps[-1].observation


# The endpoint


def post(endpoint: Endpoint, path: str, content: Any, **headers: str) -> httpx.Response:
    return httpx.post(f"{endpoint.address}{path}", content=content, headers=headers, timeout=30)


def test_a_wrong_key_is_refused_before_the_body_is_read(endpoint: Endpoint) -> None:
    sent = []

    def endless() -> Any:
        for _ in range(1 << 14):
            sent.append(1)
            yield bytes(1 << 16)

    with suppress(httpx.TransportError):  # closed while the client still sent
        assert post(endpoint, "/e/sk-wrong/v1/chat/completions", endless()).status_code == 401
    assert len(sent) < 1 << 10


def test_a_body_is_refused_when_its_bytes_are_too_many(endpoint: Endpoint) -> None:
    session = endpoint.open()
    sent = []

    def long() -> Any:
        for _ in range(LARGEST_BODY >> 12):
            sent.append(1)
            yield b" " * (1 << 16)

    with suppress(httpx.TransportError):
        assert post(endpoint, f"/e/{session.key}/v1/chat/completions", long()).status_code == 413
    assert len(sent) < LARGEST_BODY >> 14  # what is counted, what is passed over, and buffers
    assert session.budget.bytes_in_flight == 0


@pytest.mark.parametrize("number", [1_000_000, 513])
def test_more_responses_than_an_episode_may_have_open_are_refused(endpoint: Endpoint, number: int) -> None:
    session = endpoint.open()
    answer = httpx.post(f"{endpoint.address}/e/{session.key}/v1/chat/completions", json=HELLO | {"n": number})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "n"


def test_a_web_page_is_refused(endpoint: Endpoint) -> None:
    session = endpoint.open()
    for headers in ({"origin": "http://example.org"}, {"host": "example.org"}):
        answer = httpx.post(
            f"{endpoint.address}/e/{session.key}/v1/chat/completions", json=HELLO, headers=headers
        )
        assert answer.status_code == 403


HOSTILE = """
import json, os, socket, subprocess, sys, threading, time, urllib.request
for depth in range(200):
    os.mkdir('d' * 100); os.chdir('d' * 100)
url, key = os.environ['OPENAI_BASE_URL'] + '/chat/completions', os.environ['OPENAI_API_KEY']
def post(body, key=key):
    request = urllib.request.Request(url, body, {'Authorization': 'Bearer ' + key})
    try:
        urllib.request.urlopen(request, timeout=5).read()
    except OSError:
        pass
for body in (b'[' * 100000, b'{"messages": [{"role": 5}]}', b'{"messages": 7}', b'\\xff', b'{"n": 1e9}'):
    post(body)
    post(body, 'sk-other')
post(json.dumps({'messages': [{'role': 'user', 'content': 'x' * 3000000}], 'n': 100000}).encode())
sockets = []
try:
    for _ in range(500):
        sockets.append(socket.create_connection(('127.0.0.1', 8000)))
        sockets[-1].sendall(b'POST /v1/chat/completions HTTP/1.1\\r\\nhost: localhost\\r\\n')
except OSError:
    pass
while True:
    try:
        subprocess.Popen(['sleep', '3600'])
    except OSError:
        break
held = bytearray(1 << 30)
time.sleep(3600)
"""


@pytest.mark.slow
def test_one_hostile_program_changes_no_outcome_of_63_others() -> None:
    """The others have a small program that asks and ends."""
    code = f"""
import os
if '"start": 0' in os.environ['SKILLPRESS_TASK']:
    exec({HOSTILE!r})
else:
    {dedent(ASKS).replace(chr(10) + " " * 8, chr(10) + " " * 4)}
"""
    tasks = [Task(f"t-{n}", "program", n, {"id": f"t-{n}", "start": n}) for n in range(64)]
    episodes = play(isolated(code, seconds=40.0, memory_mb=512), tasks, rollouts=1)
    outcomes = {episode.task_id: episode.outcome for episode in episodes}
    assert outcomes.pop("t-0") in ("over_limits", "out_of_time", "crashed")
    assert set(outcomes.values()) == {"won"} and len(outcomes) == 63
