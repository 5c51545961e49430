"""Attacks by messages to the host and by output: rows of the table in attacks.md."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest

from skillpress.rollouts.sandbox import Limits
from tests.support.rollouts import attacking
from tests.support.rollouts.attacking import (
    FRAME,
    NUMBER,
    SHARP,
    SOON,
    assert_ended,
    assert_goes_on,
    attack,
    start,
)
from tests.support.rollouts.attacking import backend as backend
from tests.support.rollouts.held import held_descriptors

# Messages


FLOODS = {
    "late answers": ("frame('{\"done\": \"0\"}')", "an answer does not belong"),
    "pieces": ("frame('{\"piece\": \"\"}')", "not asked for"),
    "calls": ("frame('{\"call\": \"\", \"args\": [], \"kwargs\": {}}')", "did not read"),
    "calls whose replies are read": (
        "frame('{\"call\": \"\", \"args\": [], \"kwargs\": {}}')\n"
        "    os.read(wire, 65536)\n    time.sleep(0.001)",
        "longer than",
    ),
}  # fmt: skip
"""What is sent for half a minute, and a word in the reason why that ends."""


@pytest.mark.parametrize("kind", FLOODS)
def test_attack_message_flood(kind: str) -> None:
    flood, why = FLOODS[kind]
    code = "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nuntil = time.time() + 30\n"
    assert_ended(attack(FRAME + code + f"while time.time() < until:\n    {flood}", SHARP), why)


def test_attack_message_flood_at_the_end_of_an_episode() -> None:
    code = FRAME + "import time\nuntil = time.time() + 30\nwhile time.time() < until:\n    "
    with start() as sandbox:
        sandbox.ends_at = time.monotonic() + 0.5
        assert_ended(sandbox.execute(code + FLOODS["calls whose replies are read"][0]), "time for this task")


def test_attack_output_beside_messages() -> None:
    code = """
        import os, time
        until = time.time() + 30
        while time.time() < until:
            tool()
            os.write(1, bytes(1000))
    """
    with start(Limits(output_mb=1, seconds=60, grace_seconds=60), {"tool": lambda: None}) as sandbox:
        assert "printed more than 1 MB" in (sandbox.execute(dedent(code)).error or "")
        assert_goes_on(sandbox)


def test_attack_calls_without_end() -> None:
    with start(Limits(tool_calls=100, seconds=60, grace_seconds=60), {"tool": lambda: None}) as sandbox:
        assert sandbox.execute("for _ in range(100): tool()").error is None
        told = sandbox.execute("while True: tool()").error or ""
        assert "more than 100 times" in told and "variables are kept" in told
        assert_goes_on(sandbox)


def test_attack_large_arguments() -> None:
    def tool(text: str) -> int:
        return len(text)

    with start(Limits(messages_mb=2, seconds=60, grace_seconds=60), {"tool": tool}) as sandbox:
        told = sandbox.execute("while True: tool('x' * 900_000)").error or ""
        assert "sent more than 2 MB" in told and "variables are kept" in told
        assert_goes_on(sandbox)


def test_attack_arguments_that_are_all_wrong() -> None:
    def tool(numbers: list[int]) -> None: ...

    with start(tools={"tool": tool}) as sandbox:
        told = sandbox.execute("tool(['x'] * 100_000)").error or ""
        assert "cannot be called like that" in told and len(told) < 3000


def test_attack_forged_answer() -> None:
    forged = "frame(json.dumps({'done': number, 'result': 'forged', 'error': None}))\n'true'"
    for guess in ("1", "'1'", "'0' * 32", "None", "True"):
        assert_ended(attack(FRAME + f"number = {guess}\n{forged}"), "not understood")
    with start() as sandbox:
        assert sandbox.execute(FRAME + NUMBER + forged).result == "forged"  # it could have printed the same
        assert_ended(sandbox.execute("1"), "an answer does not belong")  # the true one


@pytest.mark.parametrize("error", ["''", "' '", "'\\n\\t'", "7", "['x']", "{}", "False"])
def test_attack_error_that_says_nothing(error: str) -> None:
    code = FRAME + NUMBER + f"frame(json.dumps({{'done': number, 'result': None, 'error': {error}}}))"
    assert_ended(attack(code), "not understood")


def test_attack_oversized_frame() -> None:
    assert_ended(attack(FRAME + "os.write(wire, b'\\xff' * 4)"), "4294967295 bytes was announced")


def test_attack_deeply_nested_frame() -> None:
    assert_ended(attack(FRAME + "frame('[' * 200_000)"), "nested too deeply")
    assert_ended(attack(FRAME + "frame('{\"a\":' * 100_000)"), "nested too deeply")


@pytest.mark.parametrize(
    "body", ["", "no JSON", "[]", "1" * 5000, '{"done"', "\\xff\\xfe", "cos\\nsystem\\n."]
)
def test_attack_broken_frame(body: str) -> None:
    assert_ended(attack(FRAME + f"frame(b'{body}')"), "not understood")


@pytest.mark.parametrize(
    "message",
    [
        '{"done": 1, "result": null, "error": null}',
        '{"done": "1", "result": [1], "error": null}',
        '{"done": "1", "result": null, "error": {"a": 1}}',
        '{"isolation": {}}',
        '{"call": ["x"], "args": [], "kwargs": {}}',
        '{"call": "x", "args": {}, "kwargs": {}}',
        '{"piece": 7}',
        '{"piece": "no base64!"}',
    ],
)
def test_attack_message_of_wrong_types(message: str) -> None:
    assert_ended(attack(FRAME + f"frame({message!r})"), "not understood")


def test_attack_half_a_frame() -> None:
    assert_ended(attack(FRAME + "os.write(wire, b'\\0\\0\\1\\0half')", SHARP))


def test_attack_closed_socket() -> None:
    assert_ended(attack(FRAME + "os.close(wire)", SHARP))


def test_attack_descriptors_for_the_host() -> None:
    code = (
        FRAME + "import socket\nconnection = socket.socket(fileno=os.dup(wire))\n"
        "body = json.dumps({'call': '', 'args': [], 'kwargs': {}}).encode()\n"
        "for _ in range(10):\n"
        "    socket.send_fds(connection, [struct.pack('>I', len(body)) + body], [0, 1, 2])\n"
        "    connection.recv(65536)"
    )
    with start() as sandbox:
        before = held_descriptors()
        told = sandbox.execute(code).error
        assert "Invalid argument" in (told or "") if attacking.BACKEND == "gVisor" else told is None
        assert held_descriptors() == before
        assert_goes_on(sandbox)


def test_attack_tools() -> None:
    def double(number: int) -> int:
        return 2 * number

    with start(tools={"double": double}) as sandbox:
        assert "valid integer" in (sandbox.execute("double('__import__')").error or "")
        assert "cannot be called like that" in (sandbox.execute("double(1, 2, x=3)").error or "")
        other = "double.__closure__[1].cell_contents._call({'call': 'eval', 'args': [], 'kwargs': {}})"
        assert "no tool of this name" in (sandbox.execute(other).error or "")
        assert sandbox.execute("double(21)").result == "42"


# Output and input


def test_attack_output_flood() -> None:
    with start(Limits(output_mb=1, grace_seconds=60)) as sandbox:
        told = sandbox.execute("while True: print('x' * 1000)")
        assert told.truncated and "more than 1 MB" in (told.error or "")
        assert len(told.stdout) < 12_000
        assert_goes_on(sandbox)


def test_attack_output_flood_of_a_child() -> None:
    limits = Limits(output_mb=1, grace_seconds=0.2)
    code = "import signal, subprocess\nsignal.signal(2, signal.SIG_IGN)\nsubprocess.run('yes')"
    assert_ended(attack(code, limits), "more than 1 MB")


def test_attack_output_between_calls() -> None:
    code = """
        import threading
        def flood():
            while True:
                print('x' * 1000)
        threading.Thread(target=flood, daemon=True).start()
    """
    with start(Limits(output_mb=1, seconds=60)) as sandbox:
        begun = sandbox.execute(dedent(code)).error  # the flood may be quicker than the call's end
        assert begun is None or "variables are kept" in begun
        time.sleep(0.2)  # no process reads: it waits for room in the pipe
        assert len(sandbox.execute("None").stdout) < 12_000


def test_attack_text_that_no_file_holds() -> None:
    with start() as sandbox:
        shown = sandbox.execute(
            "import os\nos.write(1, b'\\xff\\xfe\\x00')\nprint(ascii('\\udcff'))\n'\\ud800'"
        )
        for text in (
            shown.stdout,
            shown.result or "",
            sandbox.execute("raise ValueError('\\ud800')").error or "",
        ):
            text.encode()
        assert_goes_on(sandbox)


def test_attack_locale() -> None:
    code = """
        import locale, sys
        locale.setlocale(locale.LC_ALL, 'C')
        sys.stdout.reconfigure(encoding='utf-16')
        print('é')
    """
    with start() as sandbox:
        sandbox.execute(dedent(code))
        assert_goes_on(sandbox)


def test_attack_standard_input() -> None:
    with start(SOON) as sandbox:
        assert "EOFError" in (sandbox.execute("input()").error or "")
        assert "Error: [Errno" in (sandbox.execute("open('/dev/tty')").error or "")
        injected = "import fcntl, os\nfcntl.ioctl(os.openpty()[1], 0x5412, b'x')"
        assert "PermissionError" in (sandbox.execute(injected).error or "")
        assert_goes_on(sandbox)
