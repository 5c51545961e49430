"""Questions answered by code (L0, section 2): search, read, take notes, compute, and submit an answer.

An action is a cell of a notebook, and the observation is its output. The interpreter has ``search``,
``read``, ``submit_final_answer`` and the notepad; their data are on the host, outside the sandbox.
The episode ends with the first submitted answer, and it is won if the answer matches one of the question's
answers exactly.

``task.spec`` holds ``question``, ``answers`` (aliases), ``dataset`` and ``supporting_titles`` (for oracles;
the environment ignores them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from skillpress.core.interface import Info
from skillpress.core.trajectory import Task
from skillpress.environments.notebook_qa import desk as desks
from skillpress.environments.notebook_qa.actions import COMPUTED, read_action, short_words
from skillpress.environments.notebook_qa.answers import exact_match, f1, f1_rule, has_answer
from skillpress.environments.notebook_qa.desk import DeskState, first_desk
from skillpress.environments.notebook_qa.notebook import (
    KEEP,
    MOST_IN_A_SECTION,
    SECTIONS,
    open_notebook,
    run_cell,
    shown,
)
from skillpress.environments.notebook_qa.parameters import PARAGRAPHS, NotebookQaParameters
from skillpress.environments.notebook_qa.search import CachedSearch, SearchBackend, open_search
from skillpress.environments.notebook_qa.search.backend import SearchUnansweredError
from skillpress.environments.notebook_qa.search.texts import LONGEST_QUERY, LONGEST_TITLE, MOST_HITS
from skillpress.environments.sandboxed import (
    EpisodeSandbox,
    Lease,
    PooledEnvironments,
    SandboxedEnvironment,
    StepResult,
)
from skillpress.rollouts.sandbox import Limits, Sandbox, ToolError
from skillpress.rollouts.sandbox.tools import Tool

WRONG_ANSWER = "wrong_answer"
REMEMBERED = 4096
"""Number of searches and pages that are cached in memory."""
LONGEST_ANSWER = 10_000
"""Maximum number of characters of a submitted answer. The answers of the data sets have at most some
hundred."""


@dataclass(frozen=True)
class NotebookState(DeskState):
    """What a rendering may show, with the notepad."""

    notepad: Mapping[str, str] = field(default_factory=dict)
    """Maps sections to their texts."""


class NotebookEpisode:
    """One attempt at a question (``sandboxed.Episode``)."""

    def __init__(
        self, parameters: NotebookQaParameters, search: SearchBackend, task: Task, sandbox: EpisodeSandbox
    ) -> None:
        self._parameters, self._backend, self._sandbox = parameters, search, sandbox
        self._question: str = task.spec["question"]
        self._answers: Sequence[str] = task.spec["answers"]
        self._dataset: str = task.spec["dataset"]
        self._desk = first_desk(self._question)
        self._notepad: Mapping[str, str] = dict.fromkeys(SECTIONS, "")
        self._submitted: str | None = None
        self._steps = 0

    def start(self) -> tuple[str, Info]:
        """Prepare the interpreter and return the question."""
        tools: Mapping[str, Tool] = {
            "search": self._search,
            "read": self._read,
            "submit_final_answer": self._submit,
            KEEP: self._keep,
        }
        self._sandbox.prepare = lambda fresh: open_notebook(fresh, tools, self._notepad)
        self._sandbox.call(lambda sandbox: None)
        return f"Question: {self._question}", self._info(None, None, {})

    def act(self, action: str) -> StepResult:
        """Run code or a short action. An action that cannot be run costs its step."""
        self._steps += 1
        asked = read_action(action, self._desk)
        executed = False
        observation = "There is no code to run." if not action.strip() else "There is no such thing to name."
        if asked.invalid is None:
            execution = self._sandbox.call(lambda sandbox: run_cell(sandbox, asked.code))
            observation, executed = shown(execution, self._sandbox.told), execution.error is None
            self._look_for_comparisons(execution.stdout)
        over = self._submitted is not None
        truncated = not over and self._steps >= self._parameters.max_steps
        measures = {"executed": float(executed)} | (self._scores() if over or truncated else {})
        info = self._info(asked.code or None, asked.invalid, measures)
        return observation, over, truncated, info

    def _scores(self) -> dict[str, float]:
        said = self._submitted or ""
        return {
            "exact_match": float(exact_match(said, self._answers)),
            "f1": f1(said, self._answers, f1_rule(self._dataset)),
            "has_answer": float(has_answer(self._submitted)),
        }

    def _info(self, code: str | None, invalid: str | None, measures: Mapping[str, float]) -> Info:
        won = self._submitted is not None and exact_match(self._submitted, self._answers)
        state = NotebookState(
            question=self._question,
            desk=self._desk,
            steps=self._steps,
            steps_left=self._parameters.max_steps - self._steps,
            notepad=self._notepad,
        )
        return Info(
            won=won,
            lost=WRONG_ANSWER if self._submitted is not None and not won else None,
            action=code,
            invalid=invalid,
            admissible=short_words(self._desk),
            measures=measures,
            answer=self._submitted,
            state=state,
        )

    def _look_for_comparisons(self, printed: str) -> None:
        for line in printed.splitlines():
            if line.startswith(COMPUTED):
                self._desk = desks.computed(self._desk, line.removeprefix(COMPUTED).strip())

    def _search(self, query: str, k: int | None = None) -> list[dict[str, str]]:
        """The tool ``search``: title and snippet of the best k paragraphs, with k from 1 to 1000."""
        _refuse_long("query", query, LONGEST_QUERY)
        wanted = self._parameters.top_k if k is None else k
        try:
            hits = self._backend.search(query, max(1, min(wanted, MOST_HITS)))
        except SearchUnansweredError as error:
            raise ToolError(f"the search did not answer ({error}); try again") from error
        self._desk = desks.searched(self._desk, [(hit.title, hit.snippet) for hit in hits])
        return [{"title": hit.title, "snippet": hit.snippet} for hit in hits]

    def _read(self, title: str) -> str:
        """The tool ``read``: all paragraphs under a title."""
        _refuse_long("title", title, LONGEST_TITLE)
        try:
            text = self._backend.read(title)
        except SearchUnansweredError as error:
            raise ToolError(f"the page did not arrive ({error}); try again") from error
        if text is None:
            raise ToolError(
                f"no page has the title {title[:100]!r}; search returns the titles that can be read"
            )
        self._desk = desks.read(self._desk, title, text)
        return text

    def _submit(self, answer: str | int | float) -> str:
        """The tool ``submit_final_answer``: the first answer counts."""
        said = str(answer)
        _refuse_long("answer", said, LONGEST_ANSWER)
        if self._submitted is None:
            self._submitted = said
        return "The answer is submitted."

    def _keep(self, sections: dict[str, str]) -> None:
        """The tool that sends the notepad's contents to the host."""
        self._notepad = {name: sections.get(name, "")[:MOST_IN_A_SECTION] for name in SECTIONS}


def _refuse_long(what: str, text: str, most: int) -> None:
    """Refuse a text from the agent that is too long, before processing it."""
    if len(text) > most:
        raise ToolError(f"the {what} has {len(text)} characters; at most {most} are read")


@dataclass(frozen=True)
class NotebookSetting:
    """The parts that all episodes of a section share."""

    parameters: NotebookQaParameters
    search: SearchBackend

    @property
    def limits(self) -> Limits:
        """Limits of each sandbox."""
        section = self.parameters
        return Limits(
            seconds=section.cell_seconds,
            memory_mb=section.memory_mb,
            shown_characters=section.output_characters,
        )

    def environment(self, lease: Lease) -> SandboxedEnvironment:
        """An environment that gets its sandboxes from this lease."""
        begin = partial(NotebookEpisode, self.parameters, self.search)
        return SandboxedEnvironment(begin, lease, self.parameters.episode_seconds)


def setting(parameters: NotebookQaParameters) -> NotebookSetting:
    """The setting with the search over the section's paragraphs. The index is made if it does not exist."""
    return NotebookSetting(parameters, _search(parameters.folder / PARAGRAPHS, parameters.index_home))


def make(parameters: NotebookQaParameters) -> SandboxedEnvironment:
    """An environment that starts its own sandboxes."""
    made = setting(parameters)
    return made.environment(lambda: Sandbox.start(made.limits, isolation=parameters.isolation))


def share(parameters: NotebookQaParameters, slots: int) -> PooledEnvironments:
    """Environments whose sandboxes come from one pool."""
    made = setting(parameters)
    return PooledEnvironments(
        made.environment, made.limits, slots, parameters.episode_seconds, isolation=parameters.isolation
    )


@cache
def _search(paragraphs: Path, home: Path) -> CachedSearch:
    return CachedSearch(open_search(paragraphs, home), REMEMBERED)
