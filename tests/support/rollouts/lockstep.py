"""Lockstep written out: in each round all agents decide together, then all environments step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skillpress.core.interface import AgentState, Decision, Environment, why_invalid
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Step, Trajectory
from skillpress.models.engines.batch import BatchEngine
from skillpress.rollouts.agents import LanguageAgent
from skillpress.rollouts.collection import EpisodeRequest
from skillpress.rollouts.collection.collector import outcome


def play_in_rounds(
    make: Callable[[], Environment],
    agent: LanguageAgent,
    wanted: Sequence[EpisodeRequest],
    slots: int,
    version: int,
) -> list[Trajectory]:
    """The trajectories in the order requested, directly from the engine's ``generate``, without weight
    spans."""
    engine, waiting = agent.engine, list(enumerate(wanted))
    assert isinstance(engine, BatchEngine)
    flying: list[tuple[int, EpisodeRequest, Environment, str, list[Step], AgentState]] = []
    finished: dict[int, Trajectory] = {}
    while waiting or flying:
        while waiting and len(flying) < slots:
            number, request = waiting.pop(0)
            environment = make()
            first, info = environment.reset(request.task)
            flying.append((number, request, environment, first, [], AgentState(request.task, first, info)))
        prompts = [prompt for prompt in agent.prompter([state for *_, state in flying]) if prompt is not None]
        seeds = [derive(request.seed, len(steps)) for _, request, _, _, steps, _ in flying]
        completions = engine.generate(prompts, agent.sampling, seeds)
        still = []
        for (number, request, environment, first, steps, state), prompt, completion in zip(
            flying, prompts, completions, strict=True
        ):
            parsed = agent.parse(agent.decode(completion.token_ids))
            seen, terminated, truncated, info = environment.step(parsed.action)
            steps.append(
                Step(
                    prompt, completion.token_ids, completion.logprobs, parsed.thought,
                    info.action or parsed.action, seen, why_invalid(parsed, info),
                    agent.evaluate_step(state, parsed, seen, info), state_key=state.info.state_key,
                )
            )  # fmt: skip
            if terminated or truncated:
                finished[number] = Trajectory(
                    request.task.task_id, request.group_id, request.rollout_index, tuple(steps), info.won,
                    terminated, truncated, outcome(info), version, request.seed, first,
                )  # fmt: skip
                continue
            decision = Decision(prompt, completion.token_ids, completion.logprobs, parsed)
            state = agent.update_state(state, decision, seen, info)
            still.append((number, request, environment, first, steps, state))
        flying = still
    return [finished[number] for number in range(len(wanted))]
