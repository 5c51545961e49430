"""The same episodes behind a server and in a document: ordinary ones, and ones that attack the page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser

from skillpress.core.task_files import read_tasks
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.embedded import embedded
from skillpress.reports.viewer.page_file import self_contained
from skillpress.reports.viewer.phrases import KnownPhrases
from skillpress.reports.viewer.server import LOOPBACK, application, listen
from skillpress.reports.viewer.source import SourceFiles
from skillpress.skills.dictionary import load_dictionary
from tests.support.reports.viewer_browser import Watched
from tests.support.reports.viewer_samples import write_all

Open = Callable[..., Watched]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of ``viewer_samples``."""
    folder = tmp_path_factory.mktemp("samples")
    write_all(folder)
    return folder


@pytest.fixture(scope="session")
def catalogue(samples: Path) -> Iterator[RolloutCatalogue]:
    """Both files, open, with all costs known."""
    tasks = {task.task_id: task for task in read_tasks(samples / "tasks.parquet")}
    files = [
        SourceFiles(
            name=name, rollouts=samples / f"{name}.parquet", tasks=tasks, tokenizer=samples / "tokenizer"
        )
        for name in ("ordinary", "hostile")
    ]
    dictionary = load_dictionary(samples / "dictionary.json")
    learned = [phrase for phrase in dictionary.phrases if len(phrase) > 1]
    history = {step: dict.fromkeys(learned[step % 2 :], step + 1) for step in range(6)}
    opened = RolloutCatalogue("samples", files, KnownPhrases(dictionary, history), opens_on="trained")
    opened.wait()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def served(catalogue: RolloutCatalogue) -> Iterator[str]:
    """The address of a server of these episodes."""
    opened = listen(0)
    port = opened.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(application(catalogue, port), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    yield f"http://{LOOPBACK}:{port}/"
    server.should_exit = True
    thread.join(timeout=60)


@pytest.fixture(scope="session")
def alone(catalogue: RolloutCatalogue, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a document that holds all of them."""
    path = tmp_path_factory.mktemp("alone") / "episodes.html"
    path.write_text(self_contained(embedded(catalogue, range(len(catalogue)))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(params=["served", "alone"])
def both(request: pytest.FixtureRequest) -> str:
    """The addresses of both."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def watch(browser: Browser) -> Iterator[Open]:
    """``watch(address, width, scheme)``: a page; an error in it by the end fails the test."""
    opened: list[Watched] = []

    def open_page(address: str, width: int = 1280, scheme: str = "light") -> Watched:
        opened.append(Watched(browser, address, width, scheme))
        return opened[-1]

    yield open_page
    wrong = [trouble for each in opened for trouble in each.wrong]
    for each in opened:
        each.page.close()
    assert wrong == []
