"""The parts of ``python -m benchmarks.gpu``: what each runs, needs and may take."""

from __future__ import annotations

from dataclasses import dataclass

LIMIT = 25 * 60
"""Seconds that all parts may take together."""
FOLDER, CEILING = "{folder}", "{teraflops}"
"""Words of a command that become the part's own folder, and the ceiling that ``ceilings`` measured."""
OVERLAYS = ("smollm2", "short_countdown", "language_model/brief")
"""The task and the start of docs/language_model.md."""
MODEL = (
    *(word for name in OVERLAYS for word in ("--params", f"params/{name}.yaml")),
    *("--params", "benchmarks/gpu/learning.yaml"),
)
TINY = ("--params", "benchmarks/gpu/tiny.yaml")


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


def full() -> list[Part]:
    """The parts on a GPU; their times add up to ``LIMIT`` at most."""
    device = ("--device", "cuda", "--dtype", "bfloat16")
    return [
        Part("ceilings", "matrix product and copy", command=("benchmarks.ceilings", *device), seconds=60),
        *(sampling(rows, ("local", "transformers", "growing"), device) for rows in (64, 256, 1024)),
        sampling(256, ("vllm",), device, package="vllm", seconds=120),
        *training(
            ("--model", "smollm2", *device, "--groups", "16", "--steps", "6", "--turns", "1"), seconds=100
        ),
        *learning(MODEL, imitation=140, seconds=400, grpo=100),
        lag(MODEL, steps=8, seconds=180),
    ]


def tiny() -> list[Part]:
    """The same parts at a size that a CPU does in seconds. Their limits leave room for a busy machine."""
    device, forms = ("--device", "cpu", "--dtype", "float32"), ("local", "transformers", "growing")
    few = ("--groups", "1", "--steps", "2", "--turns", "1")
    size = ("--size", "64", "--gib", "0.01", "--seconds", "0.1")
    return [
        Part(
            "ceilings",
            "matrix product and copy",
            command=("benchmarks.ceilings", *device, *size),
            seconds=600,
        ),
        sampling(4, forms, device, model="scratch", seconds=600),
        sampling(4, ("vllm",), device, model="scratch", package="vllm", seconds=600),
        *training(("--model", "default", *device, *few), seconds=600),
        *learning(TINY, imitation=600, seconds=1200, grpo=300),
        lag(TINY, steps=2, seconds=600),
    ]


def sampling(
    rows: int,
    forms: tuple[str, ...],
    device: tuple[str, ...],
    *,
    model: str = "smollm2-135m",
    package: str = "",
    seconds: float = 110,
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
    )


def training(options: tuple[str, ...], seconds: float) -> list[Part]:
    """A GRPO step of either side, each by itself so that one is measured where the other fails."""
    command = ("benchmarks.grpo_step", *options, "--teraflops", CEILING, "--sides")
    return [
        Part("training", "GRPO step of skillpress", command=(*command, "skillpress"), seconds=seconds),
        Part("training_trl", "GRPO step of TRL", command=(*command, "trl"), seconds=seconds, package="trl"),
    ]


def learning(params: tuple[str, ...], *, imitation: float, seconds: float, grpo: float) -> list[Part]:
    """The imitation, and both methods from its end.

    Args:
        imitation: seconds of the imitation.
        seconds: of both methods and the evaluations.
        grpo: seconds that decide how many steps ``grpo`` trains.
    """
    command, where = "benchmarks.gpu.learning", ("--folder", FOLDER)
    imitate = (command, "imitate", *params, *where)
    train = (command, "train", *params, *where, "--seconds", str(grpo))
    return [
        Part("imitation", "imitation of demonstrations", command=imitate, seconds=imitation),
        Part(
            "learning",
            "grpo and segcost, the same seed",
            command=train,
            seconds=seconds,
            start_of="imitation",
        ),
    ]


def lag(params: tuple[str, ...], steps: int, seconds: float) -> Part:
    """Training with rollouts of the same step and of the last one."""
    sizes = ("--steps", str(steps), "--processes", "1", "--seeds", "0")
    unbroken = ("--params", "benchmarks/gpu/lag.yaml")
    command = ("benchmarks.lag", *params, *unbroken, *sizes, "--folder", FOLDER)
    return Part("lag", "lag 0 and 1", command=command, seconds=seconds, start_of="imitation")
