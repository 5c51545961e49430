"""The protocol between the environment and a retriever, over real servers on free ports."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from skillpress.core.errors import UserError, is_user_error
from skillpress.core.trajectory import Task
from skillpress.core.web import server_of
from skillpress.environments import environment_class
from skillpress.environments.notebook_qa.search import open_search
from skillpress.environments.search.dense import DenseSearch
from skillpress.environments.search.parameters import RETRIEVER_VARIABLE, SearchParameters
from skillpress.environments.search.retriever import RetrieverError, RetrieverServer
from skillpress.environments.search.server import retriever_app
from skillpress.rollouts.collection import BrokenEnvironmentError, ThreadVectorEnv
from tests.support.environments.films import corpus
from tests.support.integrations.running import running


@pytest.fixture(scope="module")
def served(parameters: SearchParameters, world: Path) -> Iterator[str]:
    """The URL of our own server over the small world."""
    app = retriever_app(open_search(world / "paragraphs.parquet", parameters.index_home).passages)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        running(server_of(app), listening, kill=True) as url,
    ):
        yield url


def posted(url: str, **asked: Any) -> httpx.Response:
    return httpx.post(f"{url}/retrieve", json=asked, trust_env=False)


def test_the_server_answers_as_published(served: str) -> None:
    asked = {"queries": ["Silver Harbour", "Lea Moor"], "topk": 1}
    first, second = posted(served, **asked, return_scores=True).json()["result"]
    title, _, text = first[0]["document"]["contents"].partition("\n")
    assert (title, text.split()[0], first[0]["document"]["id"]) == ("Silver Harbour", "Silver", "f0")
    assert first[0]["score"] > 0 and len(second) == 1
    assert posted(served, **asked).json()["result"] == [[first[0]["document"]], [second[0]["document"]]]


@pytest.mark.parametrize("asked", [{"queries": "Rome"}, {"queries": ["Rome"], "topk": 0}, {}])
def test_the_server_refuses_other_requests_and_web_pages(served: str, asked: dict[str, Any]) -> None:
    assert posted(served, **asked).status_code == 422
    page = {"Origin": "http://example.com"}
    assert httpx.post(f"{served}/retrieve", json=asked, headers=page, trust_env=False).status_code == 403


def test_episodes_are_the_same_over_http_and_in_this_process(
    served: str, parameters: SearchParameters, tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there are no paragraphs, whichever way the server is named."""
    over_http = parameters.model_copy(update={"retriever": served})
    assert over_http.data_files == ("questions.parquet",)
    played = []
    for section in (parameters, over_http):
        environment = section.make()
        words = section.make_oracle()(tasks[0], 0.0, 0)
        environment.reset(tasks[0])
        played.append([environment.step(word) for word in words])
    assert played[0] == played[1]
    monkeypatch.setenv(RETRIEVER_VARIABLE, f"{served}/retrieve/")
    assert parameters.url == served


@pytest.mark.parametrize("url", ["localhost:8900", "http://a:b@host", "http://host/other"])
def test_what_is_no_server_is_refused_with_its_key(url: str) -> None:
    with pytest.raises(ValueError, match=r"retriever[\s\S]*(not a server|password)"):
        environment_class("search").model_validate({"name": "search", "max_steps": 3, "retriever": url})


def test_a_server_that_does_not_answer_is_named_after_its_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            RetrieverError, match=rf"environment.retriever: {url} did not answer within 0.3 sec"
        ):
            RetrieverServer(url, 0.1)("Rome", 1)
    with pytest.raises(RetrieverError, match=r"its last error: ConnectError.*serve-retriever --passages"):
        RetrieverServer(url, 0.1)("Rome", 1)


def test_a_run_without_its_server_ends_with_a_mistake_that_names_the_server(
    parameters: SearchParameters, tasks: list[Task]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    played = ThreadVectorEnv(parameters.model_copy(update={"retriever": url, "seconds": 0.1}).make)
    played.start({0: tasks[0]})
    list(played.completed(60.0))
    played.step({0: "search question"})
    with pytest.raises(BrokenEnvironmentError, match=f"retriever: {url} did not answer") as caught:
        played.completed(60.0)
    assert is_user_error(caught.value)
    played.close()


def answering(*answers: tuple[int, str]) -> Starlette:
    """An application that gives these answers in turn, the last one for ever."""
    left = list(answers)

    async def answer(request: Request) -> Response:
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return Response(body, status)

    return Starlette(routes=[Route("/retrieve", answer, methods=["POST"])])


def test_a_server_that_is_overloaded_is_asked_again_and_bare_documents_are_read() -> None:
    bare = json.dumps({"result": [[{"id": 7, "contents": '"A"\nb\nc'}]]})
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        running(server_of(answering((503, ""), (429, ""), (200, bare))), listening, kill=True) as url,
    ):
        (found,) = RetrieverServer(url, 5.0)("Rome", 1)
    assert (found.title, found.text, found.id, found.score) == ('"A"', "b\nc", "7", 0.0)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, "no such page", "status 404: no such page"),
        (200, "hello", "'hello', which is not Search-R1's protocol"),
        (200, '{"result": []}', "not Search-R1's protocol"),
        (200, '{"result": [[{"text": "a"}]]}', "KeyError: 'contents'"),
    ],
)  # fmt: skip
def test_another_servers_answer_ends_the_run_at_once(status: int, body: str, said: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        running(server_of(answering((status, body))), listening, kill=True) as url,
        pytest.raises(RetrieverError, match=said),
    ):
        RetrieverServer(url, 60.0)("Rome", 1)


def test_the_command_serves_json_lines_until_it_is_told_to_end(tmp_path: Path) -> None:
    file = tmp_path / "wiki.jsonl"
    lines = [
        {"id": str(number), "contents": f'"{title}"\n{text}'}
        for number, (_, title, text) in enumerate(corpus().iter_rows())
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    command = [sys.executable, "-m", "skillpress.cli.command", "serve-retriever", "--port", "0"]
    command += ["--passages", str(file), "--indexes", str(tmp_path / "indexes")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().split()[1]
            (found,) = RetrieverServer(url, 30.0)("Night Orchard", 1)
            assert found.title == '"Night Orchard"' and found.text.startswith("Night Orchard is a film")
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_an_encoder_finds_the_passage_whose_vector_is_nearest(tmp_path: Path) -> None:
    """A passage is nearest to itself, and vectors are made once for a corpus, an encoder and a prefix."""
    corpus().write_parquet(tmp_path / "p.parquet")
    encoder = write_encoder(tmp_path / "encoder")
    search = DenseSearch(tmp_path / "p.parquet", encoder, tmp_path, ("", "passage: "))
    title, text = corpus().select("title", "text").row(3)
    (found, second) = search.passages(f"passage: {title}\n{text}", 2)
    assert (found.title, found.text) == (title, text) and found.score == pytest.approx(1.0, abs=1e-4)
    assert found.score > second.score
    (made,) = tmp_path.glob("vectors-*")
    before = (made / "vectors.npy").stat().st_mtime_ns
    DenseSearch(tmp_path / "p.parquet", encoder, tmp_path, ("", "passage: "))
    DenseSearch(tmp_path / "p.parquet", encoder, tmp_path)
    assert (made / "vectors.npy").stat().st_mtime_ns == before
    assert len(list(tmp_path.glob("vectors-*"))) == 2
    with pytest.raises(UserError, match="absent: no model found"):
        DenseSearch(tmp_path / "p.parquet", tmp_path / "absent", tmp_path)


def write_encoder(folder: Path) -> Path:
    """A small encoder with random weights that reads words."""
    torch.manual_seed(0)
    words = {word for row in corpus().iter_rows() for text in row for word in text.split()}
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(["?", *sorted(words)])}, unk_token="?"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    BertModel(BertConfig(vocab_size=len(words) + 1, **sizes)).save_pretrained(folder)
    return folder
