"""The checks of an environment: each returns one finding, with a remedy if something is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from gymnasium import Space
from gymnasium.spaces import Text

from skillpress.cli.checking.walks import StepAnswer, Subject, Walk
from skillpress.core.errors import TaskError
from skillpress.core.intervals import wilson
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task, TokenIds
from skillpress.experiment.experiment import Experiment
from skillpress.models.policy import Policy
from skillpress.models.policy.chat_template import without_tools
from skillpress.rollouts.agents.context import Prompter
from skillpress.training.imitation.dataset import tokenize, tokenize_growing
from skillpress.training.imitation.demonstrations import DemonstratedStep, Demonstrator

Verdict = Literal["ok", "note", "wrong"]
UNREADABLE = "\N{SNOWMAN} this is no action"
"""A text that no environment understands."""
SHOWN = 60
"""Messages show at most this many characters of a text."""
_NO_LIMIT = 1 << 30


@dataclass(frozen=True)
class CheckFinding:
    """The result of one check."""

    name: str
    verdict: Verdict
    """``ok``; ``note``: training works, but the user should know; ``wrong``: correct it before training."""
    detail: str
    remedy: str = ""


def some_tasks(experiment: Experiment, count: int) -> list[Task]:
    """The first training tasks."""
    return list(islice((task for task in _all_tasks(experiment) if task.split == "train"), count))


def _all_tasks(experiment: Experiment) -> Iterator[Task]:
    params = experiment.params
    return params.environment.checked_tasks(params.tasks.make(), params.seed)


def splits(experiment: Experiment) -> CheckFinding:
    """Every split has as many tasks as the parameters ask for, and ``check_tasks`` accepts them together."""
    try:
        made = list(_all_tasks(experiment))
        experiment.params.environment.check_tasks(made)
    except TaskError as error:
        return CheckFinding("splits", "wrong", str(error))
    sizes = Counter(task.split for task in made)
    return CheckFinding("splits", "ok", ", ".join(f"{size} {split} tasks" for split, size in sizes.items()))


def tasks(subject: Subject) -> CheckFinding:
    """The same seed makes the same tasks, no two have one id, and ``check_tasks`` accepts them."""
    again = some_tasks(subject.experiment, len(subject.tasks))
    for one, other in zip(subject.tasks, again, strict=False):
        if one != other:
            return CheckFinding(
                "tasks", "wrong", f"the same seed makes {_shown(one)} and then {_shown(other)}",
                "derive every choice in make_tasks from its seed (skillpress.core.seeds.generator)",
            )  # fmt: skip
    twice = [name for name, times in Counter(task.task_id for task in subject.tasks).items() if times > 1]
    if twice:
        return CheckFinding(
            "tasks", "wrong", f"two tasks have the id {twice[0]!r}", "give each task an id of its own"
        )
    try:
        subject.section.check_tasks(subject.tasks)
    except TaskError as error:
        return CheckFinding(
            "tasks", "wrong", f"check_tasks refuses them: {error}", "correct make_tasks or check_tasks"
        )
    return CheckFinding("tasks", "ok", f"{len(subject.tasks)} training tasks, made again they are the same")


def resets(subject: Subject, walks: Sequence[Walk]) -> CheckFinding:
    """The same task and actions give the same episode in another environment, and again after a reset."""
    environment = subject.make()
    for walk in walks:
        for where in ("in another environment", "reset again"):
            again = subject.follow(environment, walk.task, walk.actions)
            if difference := _difference(subject, walk, again):
                return CheckFinding(
                    "resets repeat", "wrong", f"task {walk.task.task_id}, {where}: {difference}",
                    "reset must set all state from the task, and step may draw only from the task's seed",
                )  # fmt: skip
    steps = sum(len(walk.actions) for walk in walks)
    return CheckFinding(
        "resets repeat", "ok", f"{len(walks)} episodes ({steps} steps), each played 2 times more"
    )


def _difference(subject: Subject, walk: Walk, again: Walk) -> str | None:
    pairs = list(zip(walk.answers, again.answers, strict=False))
    for step, (before, after) in enumerate(pairs):
        place = f"after {step} steps" if step else "after the reset"
        now = after.facts()
        for name, value in before.facts().items():
            if value != now[name]:
                return f"{place} {name} is {_shown(value)} and then {_shown(now[name])}"
        if subject.first_prompt(before, walk.task) != subject.first_prompt(after, walk.task):
            return f"{place} the prompt differs, so Info.state does"
    if len(walk.answers) != len(again.answers):
        return f"it ends after {len(walk.actions)} steps and then after {len(again.actions)}"
    return None


def demonstrations(subject: Subject, walks: Sequence[Walk], detours: Sequence[Walk]) -> CheckFinding:
    """Demonstrations win, within the step budget."""
    name, budget = "demonstrations", subject.section.max_steps
    if not subject.section.has_oracle:
        return CheckFinding(
            name, "note", "the environment has no oracle, so imitation is impossible",
            "set imitation.demonstrations: 0 and start from a pretrained model",
        )  # fmt: skip
    detail = f"{_share(walks)} win"
    if detours:
        rate = subject.experiment.params.imitation.detour_rate
        detail += f"; with detours (imitation.detour_rate {rate:g}) {_share(detours)}"
    failures = [walk for walk in walks if not walk.won]
    if not failures:
        return CheckFinding(name, "ok", detail)
    late = [walk for walk in failures if (walk.planned or 0) > budget]
    if late:
        longest = max(walk.planned or 0 for walk in late)
        need = f"{len(late)} need more than environment.max_steps {budget} (up to {longest})"
        remedy = f"{need}: raise it, or make easier tasks"
    else:
        first = failures[0]
        how = first.last.info.lost or first.last.info.invalid or "the goal is not reached"
        remedy = f"look at the oracle for task {first.task.task_id}: after {len(first.actions)} steps, {how}"
    few = 2 * len(failures) > len(walks) and subject.experiment.params.imitation.demonstrations
    return CheckFinding(name, "wrong" if few or len(failures) == len(walks) else "note", detail, remedy)


def success(walks: Sequence[Walk]) -> CheckFinding:
    """Some episode reaches the goal, and none has reached it at its beginning."""
    name = "success is seen"
    begun = [walk for walk in walks if walk.answers[0].info.won]
    if begun:
        return CheckFinding(
            name, "wrong", f"task {begun[0].task.task_id} is won after the reset",
            "leave such tasks out, or reset the environment's success with the task",
        )  # fmt: skip
    seen = sum(walk.won for walk in walks)
    if seen:
        return CheckFinding(name, "ok", f"Info.won in {seen} of {len(walks)} episodes")
    return CheckFinding(
        name, "wrong", f"Info.won is true in none of {len(walks)} episodes",
        "set it in the step that reaches the goal; for an environment of gymnasium look at environment.won",
    )  # fmt: skip


def endings(subject: Subject, walks: Sequence[Walk]) -> CheckFinding:
    """Episodes end when they are won or lost, and at the step budget."""
    name, budget = "episodes end", subject.section.max_steps
    for walk in walks:
        said = f"task {walk.task.task_id}, after {len(walk.actions)} steps:"
        last = walk.last
        for answer in walk.answers[1:]:
            over = answer.info.won or answer.info.lost is not None
            if over != answer.terminated:
                found = f"terminated {answer.terminated}, won {answer.info.won}, lost {answer.info.lost!r}"
                remedy = "terminated must be true exactly where the episode is won or lost"
                return CheckFinding(name, "wrong", f"{said} {found}", remedy)
        if len(walk.actions) >= budget and not (last.terminated or last.truncated):
            detail = f"{said} environment.max_steps {budget} is used up and truncated is False"
            return CheckFinding(name, "wrong", detail, "return truncated at the last step of the budget")
        if last.truncated and len(walk.actions) != budget:
            detail = f"{said} truncated, and environment.max_steps is {budget}"
            return CheckFinding(name, "wrong", detail, "return truncated at the last step of the budget only")
    ends = Counter(_end(walk.last) for walk in walks)
    return CheckFinding(name, "ok", ", ".join(f"{times} {end}" for end, times in sorted(ends.items())))


def _end(answer: StepAnswer) -> str:
    if answer.info.won:
        return "won"
    return (
        "lost" if answer.terminated else "out of steps" if answer.truncated else "of an oracle that stopped"
    )


def spaces(subject: Subject, walks: Sequence[Walk]) -> CheckFinding:
    """The environment's spaces contain what is observed and done."""
    environment = subject.make()
    observations = [answer.observation for walk in walks for answer in walk.answers]
    actions = [action for walk in walks for action in walk.actions]
    for name, space, texts in (
        ("observation_space", environment.observation_space, observations),
        ("action_space", environment.action_space, actions),
    ):
        outside = [text for text in texts if text not in space]
        if outside:
            return CheckFinding(
                "spaces", "wrong",
                f"{name} lacks {len(outside)} of {len(texts)} texts, such as {_shown(outside[0])}: "
                f"{_why(space, outside[0])}",
                f"widen {name}, as in Text(max_length=256, min_length=0, charset=string.printable)",
            )  # fmt: skip
    return CheckFinding("spaces", "ok", f"hold {len(observations)} observations and {len(actions)} actions")


def _why(space: Space[Any], text: str) -> str:
    if not isinstance(space, Text):
        return "the space does not contain it"
    if not space.min_length <= len(text) <= space.max_length:
        return f"{len(text)} characters, allowed are {space.min_length} to {space.max_length}"
    return f"its charset lacks {''.join(sorted(set(text) - set(space.character_set)))!r}"


def unreadable(subject: Subject, task: Task) -> CheckFinding:
    """A text that the environment cannot read costs a step and raises nothing."""
    environment = subject.make()
    environment.reset(task)
    try:
        environment.step(UNREADABLE)
        environment.step("")
    except Exception as error:  # noqa: BLE001  whatever the environment raises is the finding
        return CheckFinding(
            "any text is an action", "wrong",
            f"step({UNREADABLE!r}) or step('') raises {type(error).__name__}: {error}",
            "answer it like a step that changes nothing, with a reason in Info.invalid",
        )  # fmt: skip
    return CheckFinding("any text is an action", "ok", "an unreadable text costs a step")


@dataclass(frozen=True)
class EpisodesRead:
    """What the policy reads and writes in some episodes."""

    prompt: str
    response: str
    demonstrated: list[list[DemonstratedStep]]


def read(subject: Subject, walks: Sequence[Walk]) -> EpisodesRead:
    """The states and responses of these episodes, as imitation would see them."""
    planned = {walk.task.task_id: list(walk.actions) for walk in walks}
    demonstrator = Demonstrator(
        oracle=lambda task, detour_rate, seed: planned[task.task_id],
        environment=subject.make(),
        rendering=subject.experiment.rendering,
        update_state=subject.experiment.state_update,
        detour_rate=0.0,
    )
    found = [demonstrator((walk.task, 0)).steps for walk in walks if walk.actions]
    example = found[0][min(1, len(found[0]) - 1)]
    return EpisodesRead(subject.experiment.rendering.prompt(example.state), example.response, found)


def prompts(subject: Subject, policy: Policy, texts: EpisodesRead) -> CheckFinding:
    """Every prompt and response fits, in tokens that the policy knows."""
    name, experiment = "prompts fit", subject.experiment
    prompter, room = experiment.prompter(policy), experiment.training_sampling.max_new_tokens
    whole = _tokens(experiment, replace(prompter, budget=_NO_LIMIT), policy, texts)
    longest = max(len(prompt) for prompt, _ in whole)
    answer = max(len(response) for _, response in whole)
    detail = f"longest prompt {longest} of {prompter.budget} tokens, longest response {answer} of {room}"
    unknown = policy.tokenizer.unk_token_id
    if unknown is not None and any(unknown in prompt + response for prompt, response in whole):
        detail = f"the policy has no token for {_unknown_word(subject, policy, texts)!r}"
        return CheckFinding(name, "wrong", detail, "add the word to the environment's vocabulary")
    if answer > room:
        return CheckFinding(name, "wrong", detail, f"set sampling.max_new_tokens to {answer} or more")
    lost = len(whole) - len(_tokens(experiment, prompter, policy, texts))
    if lost:
        return CheckFinding(
            name, "wrong", f"{detail}; {lost} of {len(whole)} prompts cannot be made to fit",
            "raise policy.context_tokens, use a model with a longer context, or shorten the rendering",
        )  # fmt: skip
    if longest > prompter.budget:
        over = sum(len(prompt) > prompter.budget for prompt, _ in whole)
        detail += f"; {over} of {len(whole)} are shortened"
        return CheckFinding(name, "note", detail, "raise policy.context_tokens to keep all")
    return CheckFinding(name, "ok", detail)


def _tokens(
    experiment: Experiment, prompter: Prompter, policy: Policy, texts: EpisodesRead
) -> list[tuple[TokenIds, TokenIds]]:
    if experiment.state_update.grows:
        return tokenize_growing(texts.demonstrated, prompter, policy)
    return tokenize([step for steps in texts.demonstrated for step in steps], prompter, policy)


def responses(subject: Subject, texts: EpisodesRead) -> CheckFinding:
    """The parser reads what a demonstrator writes."""
    steps = [step for steps in texts.demonstrated for step in steps]
    for step in steps:
        parsed = subject.experiment.parser(step.response)
        if parsed.invalid or not parsed.action:
            return CheckFinding(
                "responses are read", "wrong",
                f"the parser finds {parsed.invalid or 'no action'} in {_shown(step.response)}",
                "make Rendering.response write what policy.parser (or the rendering's own parser) reads",
            )  # fmt: skip
    return CheckFinding("responses are read", "ok", f"the parser reads all {len(steps)}")


def tools(policy: Policy) -> CheckFinding:
    """A program may show tools to the policy. Its tools are known only when it first asks the policy."""
    reason = without_tools(policy.tokenizer)
    if reason is None:
        return CheckFinding("tools", "ok", "the policy's chat template shows them")
    return CheckFinding("tools", "note", reason, "the first request with tools would end a run")


def explorer(walks: Sequence[Walk]) -> CheckFinding:
    """How often random actions win."""
    won = sum(walk.won for walk in walks)
    detail = f"{_share(walks)} win"
    idle = [walk for walk in walks if not walk.actions]
    if idle:
        return CheckFinding(
            "random explorer", "wrong", f"task {idle[0].task.task_id}: explorer_actions offers nothing",
            "return the admissible actions, such as info.admissible",
        )  # fmt: skip
    if not won:
        return CheckFinding(
            "random explorer", "note", detail, "without imitation training would hardly see a success"
        )
    if won == len(walks):
        return CheckFinding(
            "random explorer", "note", detail, "these tasks may be too easy to compare methods on"
        )
    return CheckFinding("random explorer", "ok", detail)


def speed(walks: Sequence[Walk]) -> CheckFinding:
    """Steps per second of one environment."""
    steps, seconds = sum(len(walk.actions) for walk in walks), sum(walk.seconds for walk in walks)
    return CheckFinding(
        "speed", "ok", f"{steps / max(seconds, 1e-9):,.0f} steps per second in one environment"
    )


def demonstrated_walks(subject: Subject, detour_rate: float) -> Iterator[Walk]:
    """The oracle's episodes, each until the environment ends it."""
    environment, oracle = subject.make(), subject.section.make_oracle()
    for number, task in enumerate(subject.tasks):
        words = oracle(task, detour_rate, derive(subject.experiment.params.seed, "demonstration", number))
        yield subject.follow(environment, task, words)


def _unknown_word(subject: Subject, policy: Policy, texts: EpisodesRead) -> str:
    unknown, prompt = policy.tokenizer.unk_token_id, subject.experiment.rendering.prompt
    shown = (step for steps in texts.demonstrated for step in steps)
    said = (text for step in shown for text in (prompt(step.state), step.response))
    words = (word for text in said for word in text.split())
    return next((word for word in words if unknown in policy.encode([word])[0]), "a word")


def _share(walks: Sequence[Walk]) -> str:
    won = sum(walk.won for walk in walks)
    interval = wilson(won / len(walks), len(walks))
    return f"{won} of {len(walks)} ({won / len(walks):.0%}, {interval.low:.0%} to {interval.high:.0%})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
