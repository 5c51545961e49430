"""The page of a record of ``python -m benchmarks.gpu``: its figures, and the claims that they settle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from docs.words import table

Results = Mapping[str, Any]
"""Results of the parts that finished, by name."""
GIB = 2**30


def page(record: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    results = {name: part["result"] for name, part in record["parts"].items() if "result" in part}
    sections = [
        ("", heading(record)),
        ("Parts", parts(record)),
        ("Predictions", predictions(record)),
        ("Ceilings", ceilings(results)),
        ("Sampling", sampling(results)),
        ("A training step", training(results)),
        ("Learning", learning(results)),
        ("Lag", lag(results)),
        ("What was only read before", settled(results, tried=not record["tiny"])),
        ("Last words", last_words(record)),
    ]
    written = ["# One GPU"]
    for title, lines in sections:
        found = [*lines]
        if found:
            written += [*(["", f"## {title}"] if title else []), "", *found]
    return "\n".join(written) + "\n"


def heading(record: Mapping[str, Any]) -> Iterator[str]:
    """The machine and the versions."""
    yield f"`python -m benchmarks.gpu` made this page on {record['date']}, at commit {record['revision']}."
    if record["tiny"]:
        yield "**A trial at tiny size on a CPU: its figures say nothing about a GPU.**"
    for name in ("machine", "versions"):
        yield ""
        said = ", ".join(f"{key} {value}" for key, value in record[name].items())
        yield f"{name.capitalize()}: {said}."


def parts(record: Mapping[str, Any]) -> Iterator[str]:
    """What ran, and what did not."""
    rows = [
        (
            f"`{name}`",
            part["what"],
            f"{part['seconds']:.0f} of {part['limit']:.0f}" if "seconds" in part else "",
            part.get("failed", "done"),
            part.get("date", ""),
        )
        for name, part in record["parts"].items()
    ]
    yield from table(("part", "measures", "seconds", "outcome", "date"), rows)


def predictions(record: Mapping[str, Any]) -> Iterator[str]:
    """What each part was expected to show, and what it showed, if its result says so in a line."""
    rows = []
    for name, part in record["parts"].items():
        result = part.get("result")
        found = result.get("summary", "see below") if isinstance(result, dict) else part.get("failed", "")
        rows.append((f"`{name}`", part.get("prediction", ""), found))
    yield from table(("part", "predicted before it ran", "found"), rows)


def ceilings(results: Results) -> Iterator[str]:
    """The denominators."""
    if found := results.get("ceilings"):
        yield (
            f"{found['teraflops']} TFLOP/s in a {found['dtype']} product of {found['size']} rows; "
            f"{found['gigabytes_per_second']} GB/s in a copy."
        )


def sampling(results: Results) -> Iterator[str]:
    """Tokens per second of every form and number of rows."""
    rows = []
    for name, found in results.items():
        if name.startswith("sampling_"):
            for form, speed in found["tokens_per_second"].items():
                apart = found["learner_apart"].get(form)
                rows.append((
                    str(found["setting"]["prompts"]), form, f"{speed:.0f}",
                    f"{found['first_seconds'][form]:.1f}", f"{found['prefill_share'][form]:.0%}",
                    f"{_figure(apart['mean_nats'])}, {_figure(apart['largest_nats'])}" if apart else "",
                ))  # fmt: skip
    if rows:
        heads = (
            "rows",
            "form",
            "tokens/s",
            "first run, s",
            "prefill",
            "nats from the learner: mean, largest",
        )
        yield from table(heads, rows)


def training(results: Results) -> Iterator[str]:
    """Both sides of a GRPO step."""
    rows, step = [], {}
    for part in ("training", "training_trl"):
        if found := results.get(part):
            ((side, step[part]),) = found["seconds_per_step"].items()
            share = found["update_share_of_ceiling"]
            estimated = max(found["estimated_bytes"].values()) if side == "skillpress" else None
            rows.append((
                side, f"{step[part]:.3f}", f"{found['seconds_per_update'][side]:.3f}",
                f"{found['update_tokens_per_second'][side]:.0f}", f"{share[side]:.1%}" if share else "",
                f"{found['peak_bytes'][side] / GIB:.2f}", f"{estimated / GIB:.2f}" if estimated else "",
            ))  # fmt: skip
    if rows:
        heads = (
            "side",
            "s per step",
            "s per update",
            "tokens/s of it",
            "of the ceiling",
            "peak GiB",
            "estimated GiB",
        )
        yield from table(heads, rows)
        yield ""
        yield (
            "Of the ceiling: six operations per parameter and useful token, where a shared prompt counts "
            "once; tokens/s counts it once per completion."
        )
    if len(step) > 1:
        yield ""
        yield f"TRL takes {step['training_trl'] / step['training']:.2f} times as long per step."


def learning(results: Results) -> Iterator[str]:
    """Success on held-out tasks, and where the time went."""
    if not (found := results.get("learning")):
        return
    rows = [("start", _percent(found["start"]["pass_at_1"]), "", "", "", "")]
    for name in ("grpo", "segcost"):
        each, means = found[name], found[name]["means"]
        shares = (means.get(f"time_share/{who}", 0.0) for who in ("engine", "environments", "learner"))
        rows.append((
            f"`{name}`", _percent(each["pass_at_1"]), str(each["training_steps"]),
            f"{means['seconds/rollout']:.2f} + {means['seconds/update']:.2f}",
            ", ".join(f"{share:.0%}" for share in shares),
            " ".join(f"{value:.2f}" for value in each["curve"].get("success", [])),
        ))  # fmt: skip
    shares_of = "engine, environments, learner"
    heads = (
        "",
        "Pass@1, % (95% over tasks)",
        "steps",
        "s of rollout + update",
        shares_of,
        "success of each step",
    )
    yield from table(heads, rows)
    less = found["segcost_less_grpo"]["pass_at_1"]
    yield ""
    yield (
        f"`segcost` less `grpo`: {100 * less['mean']:.1f} points ({100 * less['low']:.1f} to "
        f"{100 * less['high']:.1f} over tasks). One seed says nothing about other trainings."
    )


def lag(results: Results) -> Iterator[str]:
    """Seconds per step and what staleness did."""
    if found := results.get("lag"):
        figures = ("seconds_per_step", "success", "clip_fraction", "approximate_kl")
        rows = [
            (name, *(_figure(run.get(figure)) for figure in figures)) for name, run in found["runs"].items()
        ]
        yield from table(("run", "s per step", "success", "clip fraction", "approximate KL"), rows)


Settles = Callable[[Results], str | None]
"""The sentence that results allow about a claim; None if they say nothing."""


def _graphs(results: Results) -> str | None:
    times = []
    for found in results.values():
        if isinstance(found, dict) and found.get("setting", {}).get("decoder") == "static":
            speed = found["tokens_per_second"]
            if {"local", "growing"} <= speed.keys():
                faster = speed["local"] / speed["growing"]
                times.append(f"{faster:.1f} times with {found['setting']['prompts']} rows")
    return f"measured: the speed of the cache that grows {', '.join(times)}" if times else None


def _vllm(results: Results) -> str | None:
    found = next((found for name, found in results.items() if name.startswith("sampling_vllm")), None)
    return found and (
        f"it ran: {found['tokens_per_second']['vllm']:.0f} tokens/s, at most "
        f"{_figure(found['learner_apart']['vllm']['largest_nats'])} nats from the learner"
    )


def _memory(results: Results) -> str | None:
    if not (found := results.get("training")):
        return None
    share = found["peak_bytes"]["skillpress"] / max(found["estimated_bytes"].values())
    return f"measured: {share:.0%} of the estimate, which is an upper bound"


def _learner(results: Results) -> str | None:
    return "measured" if "training" in results else None


def _whole(results: Results) -> str | None:
    return "measured" if "learning" in results else None


def _ended(results: Results) -> str | None:
    return f"measured: {found['summary']}" if (found := results.get("whole")) else None


def _nothing(results: Results) -> str | None:
    return None


CLAIMS: tuple[tuple[str, str, Settles], ...] = (
    ("the local engine's CUDA graphs", "docs/engines.md", _graphs),
    ("vLLM on a GPU, with its CUDA graphs and chunked prefill", "docs/engines.md", _vllm),
    ("`sleep` and `wake` of vLLM", "docs/engines.md", _nothing),
    ("`--gpus` of `skillpress serve-model`", "docs/engines.md", _nothing),
    ("how much of a GPU vLLM requests", "docs/engines.md", _nothing),
    ("two training processes with two servers", "docs/engines.md", _nothing),
    ("an update by DeepSpeed in bfloat16", "docs/gpus.md", _learner),
    ("a training to its end, killed and resumed", "docs/gpus.md", _ended),
    ("imitation, training and evaluation of SmolLM2-135M", "params/smollm2.yaml", _whole),
    ("the estimated memory of a training step", "--dry-run", _memory),
    ("several GPUs", "docs/scaling.md", _nothing),
    ("waiting of the GPU in TextWorld-Cooking and ALFWorld", "", _nothing),
)
"""What was only read or estimated, the page that says so, and what settles it."""


def settled(results: Results, tried: bool) -> Iterator[str]:
    """What of the documentation was measured.

    Args:
        tried: whether a GPU gave the results.
    """
    rows = [(what, where, (tried and settles(results)) or "not measured") for what, where, settles in CLAIMS]
    yield from table(("claim", "said by", "now"), rows)


def last_words(record: Mapping[str, Any]) -> Iterator[str]:
    """The end of the output of each part that failed."""
    for name, part in record["parts"].items():
        if part.get("last_words"):
            yield from (f"`{name}` {part['failed']}:", "", "```", *part["last_words"], "```", "")


def _percent(estimate: Mapping[str, Any]) -> str:
    return f"{100 * estimate['mean']:.1f} ({100 * estimate['low']:.1f} to {100 * estimate['high']:.1f})"


def _figure(value: float | None) -> str:
    """Three digits; records have no value for a result that is not a number."""
    return "none" if value is None else f"{value:.3g}"
