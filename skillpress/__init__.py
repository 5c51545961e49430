"""skillpress: reinforcement learning of language agents whose successes compress into skills.

The names below are the ones for everyday use, ``from skillpress import fit, evaluate, Sandbox``. A name's
module is imported when the name is asked for, so importing this package loads neither torch nor anything
else. These names and those of the layers' ``__init__.py`` are the public surface (docs/public.md); everything
else may change between versions. Code of this package imports from the defining modules, where the import
graph sees it. docs/architecture.md describes the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillpress.core.lazy import lazy_names
from skillpress.core.version import __version__

if TYPE_CHECKING:
    from skillpress.cli.notebook import Trained, train
    from skillpress.core.engine import Sampling
    from skillpress.core.errors import UserError
    from skillpress.core.interface import Environment, Info
    from skillpress.core.rollout_files import iterate_rollouts, read_rollouts, scan_rollouts, write_rollouts
    from skillpress.core.task_files import read_tasks, write_tasks
    from skillpress.core.trajectory import Step, Task, Trajectory
    from skillpress.environments import environment_class
    from skillpress.evaluation.statistics import compare, compare_trainings, evaluate, evaluation_steps
    from skillpress.experiment.experiment import Experiment
    from skillpress.experiment.params import Params, load_params
    from skillpress.logs.log import read_log
    from skillpress.models.policy import Policy, load_policy, save_policy
    from skillpress.rollouts.collection import Collector, requests
    from skillpress.rollouts.sandbox import Sandbox, SandboxPool
    from skillpress.skills.buffer import SuccessBuffer
    from skillpress.skills.dictionary import SkillDictionary, load_dictionary, save_dictionary
    from skillpress.skills.fit import fit
    from skillpress.skills.segmentation import segment, segmentation_cost

__all__ = [
    "Collector",
    "Environment",
    "Experiment",
    "Info",
    "Params",
    "Policy",
    "Sampling",
    "Sandbox",
    "SandboxPool",
    "SkillDictionary",
    "Step",
    "SuccessBuffer",
    "Task",
    "Trained",
    "Trajectory",
    "UserError",
    "__version__",
    "compare",
    "compare_trainings",
    "environment_class",
    "evaluate",
    "evaluation_steps",
    "fit",
    "iterate_rollouts",
    "load_dictionary",
    "load_params",
    "load_policy",
    "read_log",
    "read_rollouts",
    "read_tasks",
    "requests",
    "save_dictionary",
    "save_policy",
    "scan_rollouts",
    "segment",
    "segmentation_cost",
    "train",
    "write_rollouts",
    "write_tasks",
]

__getattr__, __dir__ = lazy_names(__name__)
