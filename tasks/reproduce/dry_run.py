"""What an experiment would do, without doing it: its parameters, its size, its memory and its time.

    python -m tasks.reproduce.dry_run --params params/paper_alfworld.yaml
    python -m tasks.reproduce.dry_run --params ... --sampling-rate 20000 --training-rate 8000 --step-ms 5

The same as ``python -m tasks.reproduce --dry-run``. No task is made and no weights are read. All sizes
are upper bounds. Time is estimated from the rates that are given and from nothing else: tokens per
second of one process through the model (or through its update), and the milliseconds that an
environment step takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from skillpress.arguments import Parser
from skillpress.errors import UserError
from skillpress.experiment import Experiment
from skillpress.experiment.estimate import (
    KNOWN_SHAPES,
    ModelShape,
    memory_by_phase,
    replayed,
    training_memory,
    work,
)
from skillpress.params import SCRATCH, Params, check_params
from skillpress.policy.logits import SOFT_CAP
from skillpress.training.learner import read_configuration
from skillpress.yaml_files import write_yaml
from tasks import exit_codes
from tasks.reproduce.rates import Rates, add_rate_options
from tasks.reproduce.workspace import Variant, add_variant_options
from tasks.settings import ROOT


def describe(variant: Variant, rates: Rates) -> str:
    """The variant's dry run as text.

    Raises:
        ParamsError: its parameters are wrong.
    """
    values = variant.values(ROOT)
    params = check_params(values, source=variant.name or "params.yaml")
    return "\n".join([write_yaml(values), *_sizes(params), *_memory(params), *_time(params, rates)])


def model_shape(params: Params) -> tuple[ModelShape | None, str]:
    """The policy's shape, and where it is known from; None where nobody knows it here."""
    name = params.policy.model
    if name == SCRATCH:
        policy = Experiment(params).starting_policy()
        return shape_of(policy.model.config, policy.parameters), "built from the parameters"
    if name in KNOWN_SHAPES:
        return KNOWN_SHAPES[name], "from the table of known models"
    return _shape_of_files(name), "from its configuration"


def _shape_of_files(name: str) -> ModelShape | None:
    """From the model's configuration, if it is on this machine; no weights are read."""
    try:
        config = AutoConfig.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError):
        return None
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return shape_of(config, sum(weight.numel() for weight in model.parameters()))


def shape_of(config: object, parameters: int) -> ModelShape:
    """The shape of a model with this configuration; a multimodal one says it of its language model."""
    config = config.get_text_config()  # type: ignore[attr-defined]
    heads = config.num_attention_heads  # type: ignore[attr-defined]
    hidden = config.hidden_size  # type: ignore[attr-defined]
    return ModelShape(
        parameters=parameters,
        layers=config.num_hidden_layers,  # type: ignore[attr-defined]
        hidden=hidden,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_size=getattr(config, "head_dim", None) or hidden // heads,
        vocabulary=config.vocab_size,  # type: ignore[attr-defined]
        heads=heads,
        intermediate=getattr(config, "intermediate_size", None)
        or getattr(config, "n_inner", None)
        or 4 * hidden,
        soft_cap=getattr(config, SOFT_CAP, None) is not None,
    )


def _sizes(params: Params) -> Iterator[str]:

    tasks = params.tasks
    yield f"tasks: {tasks.train} train, {tasks.validation} validation, {tasks.test} test"
    yield f"demonstrations: {params.imitation.demonstrations}"
    yield "at most:"
    for part, amount in work(params).items():
        yield (
            f"  {part}: {amount.episodes:,} episodes, {amount.environment_steps:,} environment steps, "
            f"{amount.prompt_tokens:.3g} prompt and {amount.sampled_tokens:.3g} sampled tokens"
        )
    again = replayed(params)
    if again.episodes:
        yield f"  learned from again, not played: {again.episodes:,} episodes, {again.tokens:.3g} tokens"


def _memory(params: Params) -> Iterator[str]:

    shape, source = model_shape(params)
    if shape is None:
        yield f"memory: unknown, since the configuration of {params.policy.model} is not on this machine"
        return
    yield f"model: {params.policy.model}, {shape.parameters:,} parameters ({source})"
    parts = training_memory(params, shape, read_configuration(params.training.deepspeed))
    yield f"memory of one of {params.processes} training processes, at most:"
    for part, size in parts.items():
        yield f"  {part}: {size / 2**30:.2f} GiB"
    for place, on_gpu in (("on a GPU", True), ("on CPUs", False)):
        phases = memory_by_phase(parts, params.engine.sleeps, on_gpu, beside=params.training.lag == 1)
        most = max(phases, key=lambda phase: phases[phase])
        yield f"  together, {place}: {phases[most] / 2**30:.2f} GiB, while {most}"
    if params.engine.shared:
        yield "  and the memory of the engine's servers, wherever they are"


def _time(params: Params, rates: Rates) -> Iterator[str]:

    parts = work(params)
    every, training = parts.values(), parts["train_policy"]
    amounts = (
        ("sampling", sum(part.tokens for part in every), rates.sampling, "--sampling-rate"),
        ("training", training.tokens + replayed(params).tokens, rates.training, "--training-rate"),
        (
            "environment",
            sum(part.environment_steps for part in every),
            1000 / rates.step_ms if rates.step_ms else None,
            "--step-ms",
        ),
    )
    yield "time of one process, at most, from the stated rates alone:"
    for name, amount, rate, option in amounts:
        yield f"  {name}: {amount / rate / 3600:.1f} hours" if rate else f"  {name}: unknown without {option}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(description=__doc__)
    add_variant_options(parser)
    add_rate_options(parser)
    chosen = parser.parse_args(arguments)
    try:
        rates = Rates(chosen.sampling_rate, chosen.training_rate, chosen.step_ms)
        print(describe(Variant(tuple(chosen.params), chosen.seed), rates))
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
