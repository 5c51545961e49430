"""``skillpress run``: check the parameters, take the workspace's lock, and let DVC reproduce what changed.

    skillpress run                                          the default experiment, here
    skillpress run --params params/grpo.yaml --seed 1       a variant, under workspaces/
    skillpress run --set training.learning_rate=1e-4        the same, one key at a time
    skillpress run --stages filter_tasks fit_dictionary     these and what they depend on
    skillpress run --remote URL --params ... --seed 1       sharing results with other machines
    skillpress run --dry-run --params ...                   whether it fits, and what it would do
    skillpress run --dry-run --devices 8 --device-memory 80 whether it fits the GPUs of a node
    skillpress run --dry-run --launch slurm --nodes 2 ...   what a scheduler is to be given

DVC does all the work (``dvc repro`` is the same without the lock and the check). ``make run`` is the
same as a Prefect flow (``flows/run.py``).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from skillpress.core.arguments import CommandParser
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.log_lines import set_up, without_options
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.experiment.params import load_params
from skillpress.pipeline import exit_codes, parent, settings
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.reproduce.devices import add_device_options, asked_for
from skillpress.pipeline.reproduce.dvc_call import call_dvc
from skillpress.pipeline.reproduce.holding import held_workspace
from skillpress.pipeline.reproduce.launch_script import Machines, add_launch_options, launch_script
from skillpress.pipeline.reproduce.remote import check_revision, reproduce_with
from skillpress.pipeline.reproduce.workspace import Variant, add_variant_options, variant_of
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.whole_run import ALL, STAGES


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    settings.apply_all()
    words = without_options(sys.argv[1:] if arguments is None else arguments)
    parser = CommandParser(description=__doc__)
    add_variant_options(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="print the experiment and its size, run nothing"
    )
    parser.add_argument("--stages", nargs="+", default=[], help="the stages to reproduce; all without it")
    add_device_options(parser)
    add_launch_options(parser)
    parser.add_argument("--remote", help="DVC remote: take from there what other machines have done")
    parser.add_argument("--revision", help="refuse to run at another commit")
    chosen = parser.parse_args(words)
    if chosen.launch and not chosen.dry_run:
        parser.error("--launch prints a script and submits nothing: say --dry-run with it")
    try:
        set_up()
        variant = variant_of(chosen)
        variant.values(ROOT)  # overlays are wrong within a second, before torch is imported
        if chosen.launch:
            print(_launched(variant, chosen), end="")
            return 0
        if chosen.dry_run:
            from skillpress.pipeline.reproduce.dry_run import describe  # in seconds

            found = describe(variant, asked_for(chosen))
            print(found.text)
            if found.refusal:
                raise ParamsError(f"refused: {found.refusal}")
            return 0
        if chosen.revision:
            check_revision(chosen.revision)
        code = reproduce(variant, chosen.stages, chosen.remote)
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    return code


def _launched(variant: Variant, chosen: argparse.Namespace) -> str:
    """The scheduler's script; ``ParamsError`` if the named devices do not suffice."""
    servers = chosen.server_gpus > 1 or chosen.server_cache != Machines.server_cache
    if servers or chosen.devices is not None or chosen.device_memory is not None:
        from skillpress.pipeline.reproduce.dry_run import describe

        if refusal := describe(variant, asked_for(chosen)).refusal:
            raise ParamsError(f"refused: {refusal}")
    machines = Machines(
        chosen.launch,
        chosen.nodes,
        gpus=chosen.gpus,
        server_gpus=chosen.server_gpus,
        server_cache=chosen.server_cache,
    )
    return launch_script(variant, machines, ROOT)


def reproduce(variant: Variant, stages: Sequence[str] = (), remote: str | None = None) -> int:
    """``dvc repro`` in the variant's workspace, under its lock; returns an exit code of ``exit_codes``.

    Args:
        stages: the stages to reproduce, with those they depend on; all if no stage is named.
        remote: the place through which this machine and others exchange results.

    Raises:
        ParamsError: the parameters are wrong, or there is no such stage; nothing was run.
        LockTimeoutError: another run holds the workspace.
    """
    variant.values(ROOT)
    parent.name_this_process()
    os.environ[STAGES] = ",".join(stages) or ALL
    with held_workspace(variant) as workspace:
        code = reproduce_with(remote, stages) if remote else call_dvc(stages)
    if code == 0 and not stages:
        from skillpress.pipeline.finished.effect import effect_line  # in seconds

        results = workspace / RESULTS
        print(f"report: {results / 'report.html'}")
        print(effect_line(results, load_params(workspace / "params.yaml").training.steps))
    return code


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    parent.end_with_named_process()
    sys.exit(main())
