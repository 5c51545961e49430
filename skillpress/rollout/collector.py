"""Episodes in flight, each slot always busy.

A round lets the agent decide for every episode in flight in one batch and lets every environment take one
step. An episode that ends leaves its slot to the next one waiting, so nobody waits for the longest
episode of a batch, and no token is ever sampled for an episode that is over: decisions per
environment step are exactly 1. Trajectories depend neither on the number of slots nor on the process
that an environment lives in (``vector.py``).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from skillpress.interface import Agent, AgentState, Decision, Info, why_invalid
from skillpress.rollout.vector import StepResult, VectorEnvironment
from skillpress.seeds import derive
from skillpress.trajectory import Step, Task, Trajectory


@dataclass(frozen=True)
class EpisodeRequest:
    """One episode to play."""

    task: Task
    group_id: str
    rollout_index: int
    seed: int
    """Every sample of the episode derives from it and from the number of its step."""
    policy: str = ""
    """What the experiment calls the policy that plays."""
    run: int = 0
    """Which of an evaluation's independent runs."""


@dataclass
class CollectionStatistics:
    """What a collector has done so far."""

    episodes: int = 0
    environment_steps: int = 0
    decisions: int = 0
    """Responses sampled; more than the steps would mean work for episodes that are over."""


def requests(
    tasks: Sequence[Task],
    per_task: int,
    *place: int | str,
    first: int = 0,
    policy: str = "",
    run: int = 0,
) -> list[EpisodeRequest]:
    """``per_task`` episodes of each task, seeded from where in the experiment they are played.

    Args:
        place: what :func:`skillpress.seeds.derive` is given before the task and rollout index. A group's
            id is made of all of it but the first part, the experiment's seed, and of the task.
        first: the index of each task's first rollout, where it was played at this place before.
    """
    prefix = "/".join(str(part) for part in place[1:])
    return [
        EpisodeRequest(
            task=task,
            group_id=f"{prefix}/{task.task_id}",
            rollout_index=index,
            seed=derive(*place, task.task_id, index),
            policy=policy,
            run=run,
        )
        for task in tasks
        for index in range(first, first + per_task)
    ]


@dataclass
class _Episode:
    number: int
    """Its place among the episodes asked for."""
    slot: int
    request: EpisodeRequest
    state: AgentState
    first_observation: str
    steps: list[Step] = field(default_factory=list)


class Collector:
    """Plays episodes with one agent in up to ``slots`` environments at once.

    A context manager, which closes the environments.
    """

    def __init__(self, environments: VectorEnvironment, agent: Agent, slots: int) -> None:
        self.environments = environments
        self._agent, self._slots = agent, slots
        self.statistics = CollectionStatistics()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.environments.close()

    def collect(
        self,
        wanted: Sequence[EpisodeRequest],
        policy_version: int = 0,
        on_episode: Callable[[Trajectory], None] = lambda trajectory: None,
    ) -> list[Trajectory]:
        """Play every requested episode; trajectories come back in the order requested.

        Args:
            wanted: the episodes; their order decides nothing but the order of the result.
            policy_version: recorded with each trajectory.
            on_episode: told each finished episode at once.
        """
        waiting = deque(enumerate(wanted))
        finished: dict[int, Trajectory] = {}
        free = list(range(self._slots))  # slots without an episode, the lowest first
        in_flight: list[_Episode] = []
        while waiting or in_flight:
            begun = [(*waiting.popleft(), free.pop(0)) for _ in range(min(len(waiting), len(free)))]
            in_flight += self._start(begun)
            decisions = self._decide(in_flight)
            answers = self.environments.step(
                {
                    episode.slot: decision.parsed.action
                    for episode, decision in zip(in_flight, decisions, strict=True)
                }
            )
            still: list[_Episode] = []
            for episode, decision in zip(in_flight, decisions, strict=True):
                end = self._step(episode, decision, answers[episode.slot], policy_version)
                if end is None:
                    still.append(episode)
                    continue
                finished[episode.number] = end
                insort(free, episode.slot)
                self.statistics.episodes += 1
                on_episode(end)
            in_flight = still
        return [finished[number] for number in range(len(wanted))]

    def _start(self, begun: Sequence[tuple[int, EpisodeRequest, int]]) -> list[_Episode]:
        answers = self.environments.start({slot: request.task for _, request, slot in begun}) if begun else {}
        return [
            _Episode(
                number=number,
                slot=slot,
                request=request,
                state=AgentState(request.task, answers[slot].observation, answers[slot].info),
                first_observation=answers[slot].observation,
            )
            for number, request, slot in begun
        ]

    def _decide(self, episodes: Sequence[_Episode]) -> list[Decision]:
        decisions = self._agent.decide(
            [episode.state for episode in episodes],
            [derive(episode.request.seed, len(episode.steps)) for episode in episodes],
        )
        self.statistics.decisions += len(decisions)
        return decisions

    def _step(
        self, episode: _Episode, decision: Decision, answer: StepResult, policy_version: int
    ) -> Trajectory | None:
        """Record the step of one episode; its trajectory if that ended it."""
        parsed, observation, info = decision.parsed, answer.observation, answer.info
        self.statistics.environment_steps += 1
        step = Step(
            prompt_ids=decision.prompt_ids,
            response_ids=decision.response_ids,
            logprobs=decision.logprobs,
            thought=parsed.thought,
            action=info.action or parsed.action,
            observation=observation,
            invalid=why_invalid(parsed, info),
            reward_parts=self._agent.evaluate_step(episode.state, parsed, observation, info),
        )
        episode.steps.append(step)
        if not (answer.terminated or answer.truncated):
            episode.state = self._agent.update_state(episode.state, parsed, observation, info)
            return None
        request = episode.request
        return Trajectory(
            task_id=request.task.task_id,
            group_id=request.group_id,
            rollout_index=request.rollout_index,
            steps=tuple(episode.steps),
            won=info.won,
            terminated=answer.terminated,
            truncated=answer.truncated,
            outcome=outcome(info),
            policy_version=policy_version,
            seed=request.seed,
            first_observation=episode.first_observation,
            policy=request.policy,
            run=request.run,
        )


def outcome(info: Info) -> str:
    """How an episode ended: ``won``, the environment's name for the loss, or ``timeout``."""
    return "won" if info.won else info.lost or "timeout"
