"""Walk from 0 to a number in steps of 1 and 9, forwards and back."""

from collections.abc import Iterator

from skillpress.core.interface import AgentState, Info, ScratchVocabulary
from skillpress.core.sections import PositiveInt
from skillpress.core.seeds import generator
from skillpress.core.trajectory import Task
from skillpress.environments import AnyText, EnvironmentSection, Oracle, SplitSizes, VerbProjection

MOVES = {"forward": 1, "leap": 9, "back": -1, "retreat": -9}


class Walk:  # a walk that goes below 0 is lost
    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        self.action_space = self.observation_space = AnyText(64)

    def reset(self, task: Task) -> tuple[str, Info]:
        self.goal, self.place, self.steps = task.spec["goal"], 0, 0
        return "You stand at 0.", Info(admissible=[*MOVES], state=0)

    def step(self, action: str) -> tuple[str, bool, bool, Info]:  # facts, and no reward
        self.place, self.steps = self.place + MOVES.get(action, 0), self.steps + 1
        won, lost = self.place == self.goal, "fell" if self.place < 0 else None
        invalid, over = None if action in MOVES else "no_such_move", won or lost is not None
        info = Info(won=won, lost=lost, action=action, invalid=invalid, admissible=[*MOVES], state=self.place)
        return f"You stand at {self.place}.", over, not over and self.steps == self.max_steps, info


def demonstrate(task: Task, detour_rate: float, seed: int) -> list[str]:
    leaps, walks = divmod(task.spec["goal"], 9)
    detour = ["leap", "retreat"] if leaps and generator(seed, "detour").random() < detour_rate else []
    return [*detour, *["leap"] * leaps, *["forward"] * walks]


class NumberLine(EnvironmentSection):
    farthest: PositiveInt
    """A key of its own: the largest number to walk to."""

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        goals = generator(seed, "number line").permutation(self.farthest) + 1
        for goal, split in zip(goals.tolist(), sizes.splits, strict=False):
            yield Task(f"to-{goal}", self.name, seed=goal, spec={"goal": goal}, split=split)

    def make(self) -> Walk:
        return Walk(self.max_steps)

    def make_projection(self) -> VerbProjection:
        return VerbProjection(MOVES)  # a move is its own skill

    def make_oracle(self) -> Oracle:
        return demonstrate

    def prompt(self, state: AgentState) -> str:
        return f"{state.task.spec['goal']} {state.info.state}"  # the goal and the place

    def vocabulary(self, history: int) -> ScratchVocabulary:
        numbers = {str(n): n for n in range(-9, max(self.farthest, 9 * self.max_steps) + 1)}
        return ScratchVocabulary((*numbers, *MOVES), tuple(MOVES), numbers=numbers, state_words=2)
