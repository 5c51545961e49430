"""A program as an environment.

``reset`` starts the program and waits for its first request. ``step`` answers the request and waits for the
next one, or for the program's end. The observation is the part of the request that earlier requests do not
have. When the program has ended by itself, its key is closed and the verifier decides. Everything else is a
failure with a name of its own: ``crashed``, ``out_of_time``, ``too_many_calls``, ``lost``, or
``unsuccessful`` if the verifier says no.

Only the program's own time counts, neither the time in which the policy answers nor the time in which the
program waits for a processor of a busy machine.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

from gymnasium.spaces import Space

from skillpress.core.chat_messages import Message
from skillpress.core.interface import Info
from skillpress.core.storage import remove_tree
from skillpress.core.trajectory import Task
from skillpress.environments.program.opened_skills import opened_skills
from skillpress.environments.program.section import ProgramSection
from skillpress.environments.program.verifier import Played, Verify
from skillpress.environments.text.spaces import AnyText
from skillpress.rollouts.programs.endpoint import Endpoint
from skillpress.rollouts.programs.isolated import url as isolated_url
from skillpress.rollouts.programs.launch import LOST, Launcher, Running
from skillpress.rollouts.programs.mounting import MountedSkills, without_selection
from skillpress.rollouts.programs.requests import (
    Asked,
    ModelRequest,
    RefusedRequestError,
    Reply,
    added,
    as_text,
)
from skillpress.rollouts.programs.session import (
    Ended,
    Refusal,
    Session,
    Waiting,
    calls_spent,
    engine_failed,
    gone,
)
from skillpress.rollouts.programs.start import Start
from skillpress.rollouts.sandbox.limits import MOST_WAITED

_LOG = logging.getLogger(__name__)

StepResult = tuple[str, bool, bool, Info]

ATTEMPTS = 3
"""How often a program that is killed from outside is started before its episode is ``lost``."""


LEAST_CREDIT = 0.05
"""The smallest extension of a program's time, in seconds."""


def refusal(refused: str) -> RefusedRequestError:
    """The refusal of a request that the model does not get; ``refused`` is ``Reply.refused``."""
    name, _, told = refused.partition(": ")
    code = "context_length_exceeded" if name == "prompt_too_long" else name
    return RefusedRequestError(told, "messages", code)


class Replies(Space[Reply]):
    """All replies. None can be drawn at random, since there are too many kinds."""

    def contains(self, x: object) -> bool:
        """Whether it is a reply."""
        return isinstance(x, Reply)


class ProgramEnvironment:
    """One program at a time; ``close`` ends it."""

    action_space: Space[Reply] = Replies()
    observation_space: Space[str] = AnyText(1 << 24)

    def __init__(
        self,
        section: ProgramSection,
        endpoint: Endpoint,
        launcher: Launcher,
        verify: Verify,
        *,
        isolated: bool,
        folder: Path,
        skills: MountedSkills | None = None,
        side_calls: Mapping[str, str] | None = None,
    ) -> None:
        """Args:
        isolated: whether programs reach the endpoint by a forwarder inside their isolation.
        folder: contains a separate folder for each episode until it ends.
        skills: the skills that programs find; None for none.
        side_calls: see ``AgentFile.side_calls``; None for none."""
        self._section, self._endpoint, self._launcher, self._verify = section, endpoint, launcher, verify
        self._isolated, self._folder, self._skills = isolated, folder, skills
        self._side_calls = side_calls or {}
        self._episode: _Episode | None = None

    def reset(self, task: Task) -> tuple[str, Info]:
        """Start the program; if it ends before it asks anything, the first step ends the episode."""
        self.close()
        self._episode = _Episode(self, task)
        return self._episode.first()

    def step(self, action: Reply) -> StepResult:
        """Answer the program's request."""
        assert self._episode is not None, "an environment is reset before it is used"
        answer = self._episode.act(action)
        if answer[1] or answer[2]:
            self.close()
        return answer

    def close(self) -> None:
        """End the program and all that it has started. A request that still waits is refused and may be
        repeated: the engine has failed, or the run was stopped.
        """
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.close(engine_failed if episode.waits else gone)


class _Episode:
    """One episode of a program."""

    def __init__(self, environment: ProgramEnvironment, task: Task) -> None:
        self._of = environment
        self._skills = environment._skills.chosen(task.spec) if environment._skills else ()
        self._spec = without_selection(task.spec)
        self._root = Path(mkdtemp(dir=environment._folder))
        self._root.chmod(0o711)  # an isolated program's user passes through, and lists nothing
        self._folder = self._root / "work"
        self._folder.mkdir(mode=0o700)
        self._session: Session = environment._endpoint.open()
        self._running: Running | None = None
        self._seconds = self._left = environment._section.seconds_of(task)
        self._lives = ATTEMPTS
        self._credited = 0.0
        """Seconds added to the program's time, because it waited for a processor."""
        self._waiting: Waiting | None = None
        self._end: Ended | None = None
        self._calls: list[tuple[ModelRequest, Reply]] = []
        self._sides: Counter[str] = Counter()
        """Number of side calls so far, by name."""
        self._refused = ""
        """The reason of the last refused request; empty if none was refused."""
        self._launch()

    def first(self) -> tuple[str, Info]:
        """The program's first request."""
        self._hear()
        if self._waiting is None:
            return "The program ended before it asked the model.", Info()
        return self._observed()

    def act(self, reply: Reply) -> StepResult:
        """See ``Environment.step``."""
        waiting, self._waiting = self._waiting, None
        done = None if reply.refused else reply.as_action()
        if waiting is not None:
            self._calls.append((waiting.asked.request, reply))
            self._refused = reply.refused.partition(":")[0]
            if reply.refused:
                self._session.refuse(waiting, partial(refusal, reply.refused))
            else:
                self._session.answer(waiting, reply)
        if self._end is None:
            self._hear()
        if self._end is not None:
            return self._judged(self._end, done)
        if len(self._calls) >= self._of._section.max_steps:
            self.close(calls_spent)
            return (
                "The program asked once more than it may.",
                False,
                True,
                Info(lost="too_many_calls", action=done),
            )
        observation, info = self._observed(done)
        return observation, False, False, info

    @property
    def waits(self) -> bool:
        """Whether a request waits for its answer."""
        return self._waiting is not None

    def close(self, reason: Refusal) -> None:
        """End the program, close its key, and remove its folder."""
        running, self._running = self._running, None
        self._of._endpoint.end(self._session, reason)
        if running is not None:
            running.stop()
        try:
            remove_tree(self._root)
        except OSError as error:  # what one program has left must not end the others' run
            _LOG.warning("note: %s cannot be removed: %s", self._root, error)

    def _launch(self) -> None:
        key = self._session.key
        url = isolated_url(key) if self._of._isolated else f"{self._of._endpoint.address}/e/{key}"
        spec = {name: value for name, value in self._spec.items() if name != "hidden"}
        listed = self._of._skills.listed(self._skills) if self._of._skills else ""
        start = Start(key, url, task=spec, folder=self._folder, skills=self._skills, listed=listed)
        self._running = self._of._launcher.start(start, self._session.ended)

    def _hear(self) -> None:
        """Wait for the program's next request or its end. A program that was killed from outside begins
        again, and gets the same answers as far as it asks the same."""
        while True:
            began = time.monotonic()
            heard = self._session.next(self._left)
            self._left = max(0.0, self._left - (time.monotonic() - began))
            if heard is None and self._credit():
                continue
            if isinstance(heard, Waiting):
                self._waiting = heard
                return
            self._end = heard or Ended("out_of_time")
            if self._end.why != LOST or self._lives == 1:
                return
            self._lives -= 1
            if self._running is not None:
                self._running.stop()
            self._of._endpoint.renew(self._session)
            self._end = None
            self._launch()

    def _credit(self) -> bool:
        """Add the time in which the program waited for a processor; return whether that was enough to wait
        for it again. A program must not fail because the machine is busy.
        """
        waited = 0.0 if self._running is None else self._running.waited()
        new = min(waited, MOST_WAITED * self._seconds) - self._credited
        if new < LEAST_CREDIT:
            return False
        self._credited += new
        self._left += new
        return True

    def _observed(self, done: str | None = None) -> tuple[str, Info]:
        assert self._waiting is not None
        asked = self._named(self._waiting.asked)
        self._sides += Counter([asked.side] if asked.side else ())
        before: list[Sequence[Message]] = [request.messages for request, _ in self._calls]
        said = as_text(added(asked.request.messages, before))
        return said, Info(action=done, state=replace(asked, beside=self._beside), draw=asked.draw)

    def _beside(self) -> Sequence[Asked]:
        """The program's other open requests, at most as many as ``max_steps`` still allows."""
        queued = self._session.queued()[: self._of._section.max_steps - len(self._calls) - 1]
        return [self._named(each) for each in queued]

    def _named(self, asked: Asked) -> Asked:
        """The request, with its name if it is a side call."""
        told = asked.request.messages
        looked_at = [*(message for message in told[:-1] if message.role == "system"), *told[-1:]]
        found = (
            name
            for name, words in self._of._side_calls.items()
            if any(words in message.content for message in looked_at)
        )
        return replace(asked, side=next(found, ""))

    def _judged(self, end: Ended, done: str | None) -> StepResult:
        self._of._endpoint.end(self._session)
        lost = self._refused if self._refused and end.why == "crashed" else end.why
        if end.why is not None and end.why not in self._of._section.judged:
            info = Info(lost=lost, action=done, measures=self._measured())
            return end.printed[-2000:], True, False, info
        verdict = self._of._verify(Played(self._spec, end.printed, self._folder, self._calls))
        info = Info(
            won=verdict.success,
            lost=None if verdict.success else lost or verdict.lost,
            action=done,
            measures={**verdict.measures, **self._measured()},
        )
        return f"{end.printed[-2000:]}{verdict.said}", True, False, info

    def _measured(self) -> dict[str, float]:
        """A measure ``opened_skill/NAME`` for each skill that the program visibly opened, and
        ``side_calls/NAME``, the number of its side calls.
        """
        replies = [reply for _, reply in self._calls if not reply.refused and reply.finish != "length"]
        names = opened_skills((reply.as_action() for reply in replies), self._skills)
        opened = {f"opened_skill/{name}": 1.0 for name in names}
        return opened | {f"side_calls/{name}": float(count) for name, count in self._sides.items()}
