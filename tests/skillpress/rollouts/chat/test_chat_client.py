"""One question to a chat-completions server: repeated if that can help, otherwise ended with a reason."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from threading import Barrier

import pytest

from skillpress.core.engine import Sampling
from skillpress.rollouts.chat.client import ChatClient, backoff
from skillpress.rollouts.chat.journal import spent
from skillpress.rollouts.chat.refusals import retry_after
from skillpress.rollouts.chat.server import ChatError, ChatServer
from tests.support.rollouts.chat_server import Manner, Sent, Trouble, chat_server, first_choice
from tests.support.rollouts.manners import AT_ONCE, NEWER_LIMIT

PROMPT = "The actions that you can take now: ['look', 'wait']."
ANSWER = first_choice(PROMPT)
SAMPLING = Sampling(0.4, 0.9, 20, 64)


def error(status: int, headers: dict[str, str] | None = None, **fields: str):
    body = {"error": {"message": "no", "type": "t", "param": None, "code": None, **fields}}
    return status, headers or {}, body


def well(number: int, body: dict, good: dict) -> Sent:
    return good


def ask(
    tmp_path: Path, trouble: Trouble = lambda number: None, times: int = 1, manner: Manner = well, **server
):
    """Return (answers, requests that the server received, the journal's sums)."""
    with chat_server(trouble, manner=manner) as (url, heard):
        client = ChatClient(ChatServer(url, "toy", **server), SAMPLING, tmp_path / "answers.jsonl")
        try:
            answers = [client.reply(PROMPT, seed, f"task {seed}") for seed in range(times)]
        finally:
            client.close()
    return answers, heard, spent(tmp_path / "answers.jsonl")


def test_a_prompt_is_sent_as_one_user_turn_with_all_that_decides_the_sampling(tmp_path: Path) -> None:
    answers, heard, _ = ask(tmp_path)
    (body,) = heard.bodies
    assert answers == [ANSWER]
    assert body == {
        "model": "toy", "messages": [{"role": "user", "content": PROMPT}], "temperature": 0.4, "top_p": 0.9,
        "top_k": 20, "max_tokens": 64, "seed": 0,
    }  # fmt: skip


@pytest.mark.parametrize("line", ["X-Gateway: caf\u00e9", "X Gateway: mine", ": mine", "X-Gateway: a\x07b"])
def test_a_header_that_http_cannot_carry_is_refused(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", line)
    with pytest.raises(ChatError, match=r"OPENAI_CUSTOM_HEADERS: .* HTTP cannot carry"):
        ChatServer("http://host/v1").check()


def test_a_rate_limit_makes_every_request_wait_as_long_as_it_says(tmp_path: Path) -> None:
    limit = error(429, {"Retry-After": "1"})
    answers, heard, sums = ask(tmp_path, lambda number: limit if number == 1 else None, times=2)
    assert answers == [ANSWER, ANSWER]
    assert heard.times[1] - heard.times[0] >= 1
    assert len(heard.bodies) == 3
    assert sums == {"requests": 2, "prompt_tokens": 20, "response_tokens": 6, "uncounted": 0}


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_by_itself_is_asked_again(tmp_path: Path, status: int) -> None:
    answers, heard, _ = ask(tmp_path, lambda number: error(status) if number == 1 else None)
    assert answers == [ANSWER] and len(heard.bodies) == 2


def test_a_slow_answer_is_not_waited_for_beyond_its_share_of_the_deadline(tmp_path: Path) -> None:
    answers, heard, sums = ask(tmp_path, lambda number: 60.0 if number == 1 else None, deadline_seconds=12)
    assert answers == [ANSWER] and len(heard.bodies) > 1
    assert sums["requests"] == 1


def test_a_server_that_never_recovers_ends_in_an_error_that_names_url_request_and_cause(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        ChatError, match=r"http://127.0.0.1:\d+/v1: POST chat/completions \(task 0, 52 characters\) was not "
        r"answered within 1.5 s, in \d+ attempts; the last one: HTTP 500: no",
    ):  # fmt: skip
        ask(tmp_path, lambda number: error(500), deadline_seconds=1.5)


def test_a_server_that_wants_a_longer_pause_than_the_deadline_ends_at_once(tmp_path: Path) -> None:
    limit = error(429, {"Retry-After": "3600"})
    with pytest.raises(ChatError, match="in 1 attempts; the last one: HTTP 429: no"):
        ask(tmp_path, lambda number: limit)


def test_a_refusal_is_not_repeated_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match=r"HTTP 401.*name that with --key-variable"):
        ask(tmp_path, lambda number: error(401))
    with pytest.raises(ChatError, match=r"was refused with HTTP 404"):
        ask(tmp_path, lambda number: error(404))


def test_a_key_is_sent_from_its_variable_alone_and_stands_in_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("MY_KEY", "sk-secret-12345")
    _, heard, _ = ask(tmp_path)
    assert heard.keys == ["Bearer none"]
    with pytest.raises(ChatError) as refused:
        ask(tmp_path, lambda number: error(401, message="bad key sk-secret-12345"), key_variable="MY_KEY")
    assert "sk-secret" not in str(refused.value) and "environment variable MY_KEY" in str(refused.value)
    _, heard, _ = ask(tmp_path, key_variable="MY_KEY")
    assert heard.keys == ["Bearer sk-secret-12345"]
    assert all("sk-secret" not in file.read_text() for file in tmp_path.iterdir())


def test_nothing_of_another_account_in_the_environment_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer of-somebody-else\nX-Gateway: mine")
    _, heard, _ = ask(tmp_path)
    (headers,) = heard.headers
    assert "of-somebody-else" not in str(headers)
    assert headers["x-gateway"] == "mine"


def test_a_prompt_that_does_not_fit_is_told_apart(tmp_path: Path) -> None:
    answers, heard, sums = ask(tmp_path, lambda number: error(400, code="context_length_exceeded"))
    assert answers == [""] and len(heard.bodies) == 1 and sums["requests"] == 0


def test_the_one_model_that_is_served_is_found_and_of_several_one_must_be_chosen(tmp_path: Path) -> None:
    for models, found in ((("toy",), "toy"), (("a", "b"), None)):
        with chat_server(models=models) as (url, _):
            client = ChatClient(ChatServer(url), SAMPLING, tmp_path / "none")
            if found:
                assert client.served_model() == found
            else:
                with pytest.raises(ChatError, match="serves a, b; choose one with --name"):
                    client.served_model()
            client.close()


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (ChatServer("ftp://x"), "is not an address"),
        (ChatServer("http://[::1"), "is not an address"),
        (ChatServer("http://host:99999/v1"), "is not an address"),
        (ChatServer("http://host/v1?key=sk-secret"), "has a part after '\\?'"),
        (ChatServer("http://host/v1", omit=("seed", "best_of")), "--omit: best_of is not a parameter"),
        (ChatServer("http://me:secret@host/v1"), "the address holds a password"),
        (ChatServer("http://host/v1", body={"top_p": 1, "user": "me"}), "--body: top_p is written by"),
        (ChatServer("http://host/v1", body={"messages": []}), "--body: messages is written by"),
        (ChatServer("http://host/v1", key_variable="NOBODY_SET_THIS"), "NOBODY_SET_THIS is not set"),
    ],
)
def test_a_server_that_cannot_be_used_is_refused_without_asking_it(server: ChatServer, message: str) -> None:
    with pytest.raises(ChatError, match=message):
        server.check()


@pytest.mark.parametrize("url", ["http://me:open sesame@host/v1", "http://me:open/sesame@host/v1"])
def test_an_address_that_cannot_be_read_is_not_repeated_where_it_may_hold_a_password(url: str) -> None:
    with pytest.raises(ChatError, match="which holds an @, is not an address") as refused:
        ChatServer(url).check()
    assert "sesame" not in str(refused.value)


def test_pauses_grow_to_a_limit_and_differ_between_requests() -> None:
    assert all(0.25 * 2 ** (n - 1) <= backoff(7, n) <= 0.5 * 2 ** (n - 1) for n in range(1, 6))
    assert 15 <= backoff(7, 50) <= 30
    assert len({backoff(seed, 1) for seed in range(20)}) > 10


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:29:00 GMT"}, 0.0),
        ({"retry-after": "1792567680", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after": "1792567680000", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after-ms": "1792567680000", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after": "1792567600", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 0.0),
        ({"retry-after": "2026-10-21T07:28:00Z", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after": "2026-10-21T09:28:00+02:00", "date": "Wed, 21 Oct 2026 07:27:20 GMT"}, 40.0),
        ({"retry-after": "30s"}, 30.0),
        ({"retry-after": "soon", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_a_pause_is_read_in_seconds_or_until_a_date_of_the_servers_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


def test_a_date_is_counted_from_our_clock_where_the_server_does_not_tell_its_own() -> None:
    in_an_hour = formatdate(time.time() + 3600, usegmt=True)
    assert 3590 < (retry_after({"retry-after": in_an_hour}) or 0) <= 3600


def test_a_journal_whose_last_line_was_cut_off_counts_the_others(tmp_path: Path) -> None:
    journal = tmp_path / "answers.jsonl"
    journal.write_text('{"prompt_tokens": 5, "response_tokens": 2}\n{"prompt_tok')
    assert spent(journal) == {"requests": 1, "prompt_tokens": 5, "response_tokens": 2, "uncounted": 0}


def test_a_refused_parameter_is_learned_once_for_all_requests_under_way(tmp_path: Path) -> None:
    """16 requests are sent in the old form before one is refused; each is repeated in the new form."""
    together = Barrier(AT_ONCE)

    def manner(number: int, body: dict, good: dict) -> Sent:
        if number <= AT_ONCE:
            together.wait(30)
        return (400, {}, NEWER_LIMIT) if "max_tokens" in body else good

    with chat_server(manner=manner) as (url, heard), ThreadPoolExecutor(AT_ONCE) as threads:
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        answers = list(threads.map(lambda seed: client.reply(PROMPT, seed, f"task {seed}"), range(AT_ONCE)))
        assert client.reply(PROMPT, 0, "one more") == ANSWER
        client.close()
    assert answers == [ANSWER] * AT_ONCE
    assert ["max_tokens" in body for body in heard.bodies] == [True] * AT_ONCE + [False] * (AT_ONCE + 1)
    assert heard.bodies[-1]["max_completion_tokens"] == 64


def test_values_that_change_nothing_are_not_sent_unless_the_server_would_put_its_own_there(
    tmp_path: Path,
) -> None:
    vllm = {"object": "list", "data": [{"id": "toy", "owned_by": "vllm", "max_model_len": 4096}]}
    sent = {}
    for name, listed in (("any", None), ("vllm", vllm)):
        with chat_server(listed=lambda path, listed=listed: listed) as (url, heard):
            client = ChatClient(
                ChatServer(url, "toy"), Sampling(max_new_tokens=9), tmp_path / "answers.jsonl"
            )
            client.meet()
            client.reply(PROMPT, 0, "task")
            client.close()
        sent[name] = {
            key: value for key, value in heard.bodies[0].items() if key not in ("model", "messages")
        }
    assert sent["any"] == {"max_tokens": 9, "temperature": 1.0, "seed": 0}
    assert sent["vllm"] == {**sent["any"], "top_p": 1.0, "top_k": -1}


def test_what_is_to_be_left_out_is_not_sent(tmp_path: Path) -> None:
    _, heard, _ = ask(tmp_path, omit=("seed", "top_p", "max_tokens"))
    assert set(heard.bodies[0]) == {"model", "messages", "temperature", "top_k"}


def test_a_server_that_states_its_context_is_asked_for_the_tokens_of_long_prompts_first(
    tmp_path: Path,
) -> None:
    listed = {"data": [{"id": "toy", "max_model_len": 1000}]}
    counted: list[str] = []

    def tokens(prompt: str) -> int:
        counted.append(prompt)
        return len(prompt.split())

    with chat_server(listed=lambda path: listed, tokens=tokens) as (url, heard):
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        client.meet()
        short, fits, long = PROMPT, "word " * 930, "word " * 940
        assert [client.ask(prompt, 0, "task").ended for prompt in (short, fits, long)] == [
            "whole", "whole", "prompt_too_long",
        ]  # fmt: skip
        client.close()
    assert counted == [fits, long] and len(heard.bodies) == 2
    with chat_server(listed=lambda path: listed) as (url, heard):  # it has no /tokenize
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        client.meet()
        assert client.ask(long, 0, "task").ended == "whole"
        client.close()


def test_a_context_without_room_for_a_prompt_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with chat_server(listed=lambda path: {"data": [{"id": "toy", "max_model_len": 64}]}) as (url, heard):
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        with pytest.raises(ChatError, match="the context of toy has 64 tokens, and max_new_tokens is 64"):
            client.meet()
        client.close()
    assert not heard.bodies


@pytest.mark.parametrize("written", ["{url}", "{url}/", "{root}", "{root}/", "{url}/chat/completions"])
def test_an_address_may_have_a_slash_or_the_endpoint_at_its_end_or_lack_v1(
    written: str, tmp_path: Path
) -> None:
    def listed(path: str) -> Sent | None:
        return None if path == "/v1/models" else (404, {}, {"detail": "Not Found"})

    with chat_server(listed=listed) as (url, _):
        address = written.format(url=url, root=url.removesuffix("/v1"))
        client = ChatClient(ChatServer(address, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        client.meet()
        assert client.reply(PROMPT, 0, "task") == ANSWER
        client.close()


def test_a_body_without_end_is_not_read(tmp_path: Path) -> None:
    endless = [b"HTTP/1.1 200 OK\r\n\r\n", *[b" " * 2**20] * 17]
    answers, heard, _ = ask(tmp_path, manner=lambda number, body, good: endless if number == 1 else good)
    assert answers == [ANSWER] and len(heard.bodies) == 2


def test_half_a_surrogate_in_a_prompt_is_replaced(tmp_path: Path) -> None:
    with chat_server() as (url, heard):
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        client.reply("a \ud83d cat", 0, "task")
        client.close()
    assert heard.bodies[0]["messages"] == [{"role": "user", "content": "a \ufffd cat"}]


def test_closing_ends_what_is_under_way(tmp_path: Path) -> None:
    with chat_server(lambda number: 20.0) as (url, heard), ThreadPoolExecutor(1) as threads:
        client = ChatClient(ChatServer(url, "toy"), SAMPLING, tmp_path / "answers.jsonl")
        waiting = threads.submit(client.reply, PROMPT, 0, "task")
        while not heard.bodies:
            time.sleep(0.01)
        client.close()
        with pytest.raises(ChatError, match="was not answered"):
            waiting.result(10)
