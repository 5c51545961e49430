"""Play many episodes at once; each continues as soon as its agent or its environment has answered.

A collector moves every episode back and forth between two parties: the agent, which is asked for a decision,
and the environment, which is asked for a step. Both answer when they can. When an episode ends, its slot goes
to the next waiting episode, so the collector never waits for the longest episode of a batch and never samples
tokens for an episode that has ended. It makes exactly 1 decision per environment step, plus the decisions
that an agent makes for itself. (The agent may summarize its past or reflect on an earlier attempt, without
the environment seeing it, and is then asked again immediately.) Trajectories depend neither on the number of
slots, nor on the process that an environment lives in (``vector.py``), nor on the order of answers.

If the agent decides in this process (``Agent.lockstep``), asking it for one episode would block the others.
It is then asked for all episodes at once, when no environment is busy, and the environments step together in
rounds. Everything then happens in one fixed order. Where steps differ much in time, a round may begin
earlier: some seconds after the first of its episodes could continue (``gather_seconds``). The others join a
later round; which episodes these are depends on timing.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from skillpress.core.answers import WAIT_SECONDS, UnansweredError
from skillpress.core.interface import Agent, AgentState, Decision, DecisionRequest, Info, why_invalid
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Project, RewardPart, Step, Summary, Task, Trajectory, step_skills
from skillpress.rollouts.collection.requests import EpisodeRequest
from skillpress.rollouts.collection.statistics import CollectionStatistics
from skillpress.rollouts.collection.vector import StepResult, VectorEnvironment

PATIENCE_SECONDS = 1800.0
"""The collector gives up on an agent after this time without any decision. Engines have shorter deadlines."""
TURN_SECONDS = 0.002
"""While both parties have open requests, the collector waits for each in turn for this long."""

Advise = Callable[[EpisodeRequest, str, int], str]
"""Maps (request, first observation, version of the playing weights) to the knowledge given in that
episode."""
_END = object()
"""Given by an exhausted iterator."""


class CollectionStoppedError(RuntimeError):
    """Another thread stopped the collector."""


class Collector:
    """Plays episodes with one agent in up to ``slots`` environments at once.

    A context manager, which closes the environments.
    """

    def __init__(
        self,
        environments: VectorEnvironment,
        agent: Agent,
        slots: int,
        patience: float = PATIENCE_SECONDS,
        advise: Advise | None = None,
        project: Project | None = None,
        gather_seconds: float | None = None,
    ) -> None:
        """Args:
        patience: seconds without any decision after which the collector gives up on the agent.
        advise: returns knowledge that the agent gets in every episode, placed above the request's own
            knowledge; None for no such knowledge.
        project: φ, which gives the skills that the steps of a finished episode record; None records none.
        gather_seconds: in lockstep, how long a round waits for further episodes; if None, for all."""
        self.environments, self.agent, self.advise, self.project = environments, agent, advise, project
        self._slots, self._patience, self.gather_seconds = slots, patience, gather_seconds
        self.statistics = CollectionStatistics()
        self.stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.environments.close()

    def stop(self) -> None:
        """Stop playing. A call of ``play`` in another thread ends at its next turn: when the engine or an
        environment has answered, or after a second."""
        self.stopped = True

    def collect(self, wanted: Sequence[EpisodeRequest], policy_version: int = 0) -> list[Trajectory]:
        """Play every requested episode and return the trajectories in the order requested.

        Args:
            wanted: the episodes. Their order affects only the order of the result.
            policy_version: recorded with each trajectory.
        """
        finished: dict[int, Trajectory] = {}
        self.play(enumerate(wanted), finished.__setitem__, policy_version)
        return [finished[number] for number in range(len(wanted))]

    def play(
        self,
        wanted: Iterable[tuple[int, EpisodeRequest] | None],
        on_episode: Callable[[int, Trajectory], None],
        policy_version: int | Callable[[int], int] = 0,
    ) -> None:
        """Play every requested episode without keeping any of them.

        Args:
            wanted: the episodes, each with a number chosen by the caller; read as slots become free. None,
                allowed while an episode is unfinished, begins nothing at this turn.
            on_episode: called with the number and the trajectory of each episode as soon as it has finished.
            policy_version: recorded with each trajectory; or a function that maps its number to the version,
            called when it begins.

        Raises:
            BrokenEnvironmentError: a task cannot be started, or an environment does not answer.
            UnansweredError: the agent decides nothing for ``patience`` seconds.
            CollectionStoppedError: ``stop`` was called.
        """
        flight = _Flight(self, iter(wanted), on_episode, policy_version)
        try:
            flight.run(self._slots, self._patience)
        except BaseException:  # Ctrl-C too: open requests would be taken for answers to later questions
            self.agent.abort()
            self.environments.abort()
            raise


@dataclass
class _Episode:
    number: int
    """The caller's number for the episode."""
    slot: int
    request: EpisodeRequest
    version: int
    """Version of the weights when it began."""
    first_observation: str = ""
    state: AgentState | None = None
    """X_k; None until the environment has started."""
    decision: Decision | None = None
    """The decision that the environment is about to answer; None if there is none."""
    steps: list[Step] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)


class _Flight:
    """The episodes of one call of ``Collector.play``."""

    def __init__(
        self,
        collector: Collector,
        waiting: Iterator[tuple[int, EpisodeRequest] | None],
        on_episode: Callable[[int, Trajectory], None],
        policy_version: int | Callable[[int], int],
    ) -> None:
        self._collector, self._environments, self._agent = collector, collector.environments, collector.agent
        self._statistics, self._lockstep = collector.statistics, collector.agent.lockstep
        self._waiting, self._on_episode = waiting, on_episode
        self._version = policy_version if callable(policy_version) else lambda number: policy_version
        self._exhausted, self._more = False, True
        """Whether no episode is left to begin, and whether one may begin now if a slot is free."""
        self._free: list[int] = []
        """Slots without an episode, lowest first."""
        self._episodes: dict[int, _Episode] = {}
        """Slot to its episode, in the order in which the episodes began."""
        self._stepping: set[int] = set()
        """Slots whose environment is busy."""
        self._deciding: dict[int, int] = {}
        """Maps the key of each open request to its slot."""
        self._ready: dict[int, None] = {}
        """Slots for which the agent is to be asked, in order."""
        self._gathered = math.inf
        """The time at which a lockstep round begins, whichever environments are still busy."""
        self._keys = 0
        self._heard = 0.0
        """Time of the agent's last decision, or of the first request since it had no open ones."""
        self._occupied = 0.0
        """Time since when the agent has had an open request."""

    def run(self, slots: int, patience: float) -> None:
        """Play until no episode is left."""
        self._free = list(range(slots))
        turn = time.monotonic()
        while True:
            if self._collector.stopped:
                raise CollectionStoppedError("the collector was stopped")
            self._begin()
            last, turn = turn, time.monotonic()
            self._statistics.seconds += turn - last
            if not self._episodes:
                return
            self._observe(self._answers())
            if self._lockstep and self._free and self._more:
                continue  # episodes that begin now belong to the same round
            self._ask()
            self._act(self._decisions(patience))

    def _begin(self) -> None:
        """Fill the free slots."""
        tasks: dict[int, Task] = {}
        self._more = not self._exhausted
        while self._free and self._more:
            following = next(self._waiting, _END)
            if not isinstance(following, tuple):
                self._exhausted, self._more = following is _END, False
                break
            number, request = following
            slot = self._free.pop(0)
            self._episodes[slot] = _Episode(number, slot, request=request, version=self._version(number))
            tasks[slot] = request.task
        if tasks:
            self._stepping |= tasks.keys()
            self._environments.start(tasks)

    def _answers(self) -> list[tuple[int, StepResult]]:
        """The answers of environments so far; in lockstep, the answers of the round."""
        if not self._stepping:
            return []
        if not self._lockstep:
            return self._environments.completed(0.0 if self._deciding or self._ready else WAIT_SECONDS)
        found: dict[int, StepResult] = {}
        while len(found) < len(self._stepping) and (left := self._gathered - time.monotonic()) > 0:
            found |= self._environments.completed(min(WAIT_SECONDS, left))
            if found and self._collector.gather_seconds is not None:
                self._gathered = min(self._gathered, time.monotonic() + self._collector.gather_seconds)
        return [(slot, found[slot]) for slot in self._episodes if slot in found]  # not by arrival

    def _observe(self, answers: Sequence[tuple[int, StepResult]]) -> None:
        """Process the environments' answers."""
        for slot, answer in answers:
            self._stepping.remove(slot)
            episode = self._episodes[slot]
            if episode.state is None:
                episode.first_observation = answer.observation
                episode.state = AgentState(
                    task=episode.request.task,
                    observation=answer.observation,
                    info=answer.info,
                    knowledge=self._knowledge(episode, answer.observation),
                    attempt=episode.request.attempt,
                )
            else:
                self._step(episode, episode.state, answer)
            if slot in self._episodes:
                self._ready[slot] = None

    def _knowledge(self, episode: _Episode, observation: str) -> str:
        """The knowledge that the agent is given in an episode that begins with this observation."""
        if self._collector.advise is None:
            return episode.request.knowledge
        advice = self._collector.advise(episode.request, observation, episode.version)
        return "\n".join(filter(None, (advice, episode.request.knowledge)))

    def _ask(self) -> None:
        """Give the agent the states in which it is to decide."""
        order = [slot for slot in self._episodes if slot in self._ready] if self._lockstep else self._ready
        asked = []
        for slot in order:
            episode = self._episodes[slot]
            assert episode.state is not None
            self._deciding[self._keys] = slot
            draw = episode.state.info.draw
            place = len(episode.steps) + len(episode.summaries) if draw is None else draw
            seed = derive(episode.request.seed, place)  # of its place, so slots and time do not matter
            asked.append(DecisionRequest(self._keys, episode.state, seed, episode.request.seed))
            self._keys += 1
        self._ready.clear()
        self._gathered = math.inf
        if asked:
            if len(self._deciding) == len(asked):  # nothing was asked before
                self._heard = self._occupied = time.monotonic()
            self._agent.submit(asked)

    def _decisions(self, patience: float) -> list[tuple[int, Decision]]:
        """The agent's decisions as (slot, decision); in lockstep, the decisions for all its open requests.

        Raises:
            UnansweredError: the agent has decided nothing for ``patience`` seconds.
        """
        found: list[tuple[int, Decision]] = []
        while self._deciding:
            new = self._agent.completed(TURN_SECONDS if self._stepping else WAIT_SECONDS)
            found += [(self._deciding.pop(key), decision) for key, decision in new]
            if new:
                self._heard = time.monotonic()
                if not self._deciding:
                    self._statistics.agent_seconds += self._heard - self._occupied
            elif time.monotonic() - self._heard > patience:
                raise UnansweredError(self._silence(patience))
            if not self._lockstep:
                break
        if self._deciding:  # counted turn by turn: with new requests all the time, this never ends
            since, self._occupied = self._occupied, time.monotonic()
            self._statistics.agent_seconds += self._occupied - since
        if not self._lockstep:
            return found
        decided = dict(found)
        return [(slot, decided[slot]) for slot in self._episodes if slot in decided]  # not by arrival

    def _act(self, decisions: Sequence[tuple[int, Decision]]) -> None:
        """Send the actions to their environments. An agent that summarized its past is asked again."""
        actions: dict[int, object] = {}
        for slot, decision in decisions:
            self._statistics.decisions += 1
            self._statistics.prefilled_tokens += decision.prefilled_tokens or 0
            if decision.kind not in ("action", "side"):
                self._sum_up(self._episodes[slot], decision)
                continue
            self._episodes[slot].decision = decision
            actions[slot] = decision.parsed.action
        self._stepping |= actions.keys()
        if actions:
            self._environments.step(actions)

    def _sum_up(self, episode: _Episode, decision: Decision) -> None:
        """Record a summary and continue from it."""
        state, nothing = episode.state, Info()
        assert state is not None
        parts = self._agent.evaluate_step(state, decision.parsed, "", nothing)
        episode.summaries.append(Summary(len(episode.steps), recorded(state, decision, nothing, "", parts)))
        episode.state = self._agent.update_state(state, decision, state.observation, state.info)
        self._ready[episode.slot] = None

    def _step(self, episode: _Episode, state: AgentState, answer: StepResult) -> None:
        """Record one step of an episode, and the trajectory if the step ended it."""
        decision, episode.decision = episode.decision, None
        assert decision is not None
        observation, info = answer.observation, answer.info
        self._statistics.environment_steps += 1
        parts = self._agent.evaluate_step(state, decision.parsed, observation, info)
        episode.steps.append(recorded(state, decision, info, observation, parts))
        if not (answer.terminated or answer.truncated):
            episode.state = self._agent.update_state(state, decision, observation, info)
            return
        del self._episodes[episode.slot]
        insort(self._free, episode.slot)
        self._statistics.episodes += 1
        played, project = self._trajectory(episode, answer), self._collector.project
        if project is not None:
            skills = step_skills(project, episode.request.task, played)
            pairs = zip(played.steps, skills, strict=True)
            played = replace(played, steps=tuple(replace(step, skills=each) for step, each in pairs))
        self._on_episode(episode.number, played)

    def _trajectory(self, episode: _Episode, answer: StepResult) -> Trajectory:
        request = episode.request
        return Trajectory(
            task_id=request.task.task_id,
            group_id=request.group_id,
            rollout_index=request.rollout_index,
            steps=tuple(episode.steps),
            won=answer.info.won,
            terminated=answer.terminated,
            truncated=answer.truncated,
            outcome=outcome(answer.info),
            policy_version=episode.version,
            seed=request.seed,
            first_observation=episode.first_observation,
            policy=request.policy,
            run=request.run,
            summaries=tuple(episode.summaries),
        )

    def _silence(self, patience: float) -> str:
        """The error message for an agent that does not answer."""
        slot = next(iter(self._deciding.values()))
        task = self._episodes[slot].request.task
        return (
            f"the {type(self._agent).__name__} has decided nothing for {patience:g} seconds; it was asked "
            f"in {len(self._deciding)} episodes, first in that of task {task.task_id} of {task.environment} "
            f"in slot {slot}"
        )


def recorded(
    state: AgentState, decision: Decision, info: Info, observation: str, parts: tuple[RewardPart, ...]
) -> Step:
    """Return the record of one decision: its state, the environment's answer, and the agent's reward for
    it."""
    parsed = decision.parsed
    return Step(
        prompt_ids=decision.prompt_ids,
        response_ids=decision.response_ids,
        logprobs=decision.logprobs,
        thought=parsed.thought,
        action=info.action or str(parsed.action),
        observation=observation,
        invalid=why_invalid(parsed, info),
        reward_parts=parts,
        weight_spans=decision.weight_spans,
        plain_prompt_ids=decision.plain_prompt_ids,
        state_key=state.info.state_key,
        kind=decision.kind,
        answer=info.answer,
    )


def outcome(info: Info) -> str:
    """How an episode ended: ``won``, the environment's name for the loss, or ``timeout``."""
    return "won" if info.won else info.lost or "timeout"
