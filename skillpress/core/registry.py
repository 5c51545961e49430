"""Every part of skillpress that params.yaml can name, and where it is.

One line for each; :mod:`skillpress.core.names` says how else a part may be named. A stage depends on the
parts that its experiment names and on no other: a line added here changes no stage's fingerprint
(``pipeline/closure.py`` reads these tables without importing anything).
"""

from __future__ import annotations

from skillpress.core.names import Registry as Registry
from skillpress.core.names import check_name as check_name
from skillpress.core.names import lookup as lookup
from skillpress.core.names import named as named

ENVIRONMENTS = Registry(
    "environments",
    "environment.name",
    {
        "alfworld": "skillpress.environments.alfworld.parameters:AlfworldParameters",
        "code_repair": "skillpress.environments.code_repair.parameters:CodeRepairParameters",
        "countdown": "skillpress.environments.countdown.parameters:CountdownParameters",
        "gymnasium_text": "skillpress.environments.gymnasium_text.parameters:GymnasiumTextParameters",
        "harbor": "skillpress.environments.harbor.parameters:HarborParameters",
        "notebook_qa": "skillpress.environments.notebook_qa.parameters:NotebookQaParameters",
        "openenv": "skillpress.environments.openenv.parameters:OpenEnvParameters",
        "program": "skillpress.environments.program.parameters:ProgramParameters",
        "search": "skillpress.environments.search.parameters:SearchParameters",
        "shop": "skillpress.environments.shop.parameters:ShopParameters",
        "textworld_cooking": "skillpress.environments.textworld_cooking.parameters:CookingParameters",
        "workshop": "skillpress.environments.workshop.parameters:WorkshopParameters",
    },
    "make_tasks",
)
"""``environment.name`` to the class, which is its section."""

STATE_UPDATES = Registry(
    "state_updates",
    "policy.state_update",
    {
        "window": "skillpress.rollouts.agents.state_updates:Window",
        "concatenate": "skillpress.rollouts.agents.state_updates:Concatenate",
        "environment": "skillpress.rollouts.agents.state_updates:environment",
        "observations": "skillpress.rollouts.agents.state_updates:Observations",
        "notepad": "skillpress.rollouts.agents.state_updates:Notepad",
        "summarize": "skillpress.rollouts.agents.summarize:Summarize",
        "learned": "skillpress.rollouts.agents.learned_memory:Learned",
        "store": "skillpress.rollouts.agents.store.update:stored",
    },
)
"""``policy.state_update`` to a state update made for the number of turns that the prompt shows; ``learned``
and ``store`` also receive how their memory is written."""

PARSERS = Registry(
    "parsers",
    "policy.parser",
    {
        "plain": "skillpress.rollouts.agents.parsing:plain",
        "tagged": "skillpress.rollouts.agents.parsing:tagged",
        "lenient": "skillpress.rollouts.agents.parsing:lenient",
        "notebook": "skillpress.rollouts.agents.notebook_parsing:notebook",
        "answer": "skillpress.environments.notebook_qa.scaffolds:answer",
        "answer_line": "skillpress.environments.notebook_qa.scaffolds:answer_line",
        "search": "skillpress.environments.search.actions:search",
        "json": "skillpress.rollouts.agents.structured_parsing:json_object",
        "xml": "skillpress.rollouts.agents.structured_parsing:xml",
        "planned": "skillpress.rollouts.agents.structured_parsing:planned",
        "memory": "skillpress.rollouts.agents.learned_memory:in_front",
    },
)
"""``policy.parser`` (or what a rendering names as its own) to the function."""

CALL_READERS = Registry(
    "call_readers",
    "environment.calls",
    {
        "hermes": "skillpress.rollouts.programs.tool_calls:hermes",
        "qwen_xml": "skillpress.rollouts.programs.tool_calls:qwen_xml",
        "llama_json": "skillpress.rollouts.programs.tool_calls:llama_json",
        "fenced": "skillpress.rollouts.programs.tool_calls:fenced",
        "plain": "skillpress.rollouts.programs.tool_calls:plain",
        "words": "skillpress.rollouts.programs.tool_calls:words",
    },
)
"""``environment.calls`` to a function that reads the calls of tools in a response to a program."""

ENGINES = Registry(
    "engines",
    "engine.name",
    {
        "local": "skillpress.models.engines.local:LocalParameters",
        "vllm": "skillpress.models.engines.vllm:VllmParameters",
        "server": "skillpress.models.engines.server:ServerParameters",
    },
    "model_validate",
)
"""``engine.name`` to the class of its section, which makes the engine."""

SEARCHES = Registry(
    "searches",
    "skills.search",
    {
        "greedy": "skillpress.skills.search.greedy:search_greedily",
        "refined": "skillpress.skills.search.refined:search_refined",
        "exact": "skillpress.skills.search.exact:search_exactly",
        "frequency": "skillpress.skills.search.frequency:search_by_frequency",
        "random": "skillpress.skills.search.random:search_randomly",
        "singletons": "skillpress.skills.search.singletons:no_phrases",
    },
)
"""``skills.search`` to a function from a corpus to phrases."""

CORPORA = Registry(
    "corpora",
    "skills.corpus",
    {
        "algorithm_1": "skillpress.skills.step_corpus:Algorithm1",
        "buffer_and_batch": "skillpress.skills.step_corpus:BufferAndBatch",
        "batch_accepts": "skillpress.skills.step_corpus:BatchAccepts",
        "each_task_once": "skillpress.skills.each_task_once:EachTaskOnce",
        "decayed": "skillpress.skills.decayed:Decayed",
    },
)
"""``skills.corpus`` to the class, which is made from ``skills.buffer`` and the experiment's seed."""

DICTIONARIES = Registry(
    "dictionaries",
    "skills.dictionaries",
    {
        "shared": "skillpress.skills.dictionaries:shared",
        "per_class": "skillpress.skills.dictionaries:per_class",
    },
)
"""``skills.dictionaries`` to a function from a task to the name of its dictionary."""

CLOSURES = Registry(
    "closures",
    "skills.closure",
    {
        "none": "skillpress.skills.closure:nothing_more",
        "prefixes": "skillpress.skills.closure:prefixes",
        "deletions": "skillpress.skills.closure:deletions",
    },
)
"""``skills.closure`` to what a phrase brings with it."""

RETRIEVALS = Registry(
    "retrievals",
    "skills.library.retrieval",
    {
        "by_task": "skillpress.skills.library.retrieval:by_task",
        "random": "skillpress.skills.library.retrieval:random",
        "filler": "skillpress.skills.library.retrieval:filler",
    },
)
"""``skills.library.retrieval`` to a function that chooses which of a library's skills a task shows."""

TEACHERS = Registry(
    "teachers",
    "skills.library.teacher.name",
    {
        "server": "skillpress.experiment.teaching:server",
    },
)
"""``skills.library.teacher.name`` to a function that makes the teacher from its section."""

SHAPINGS = Registry(
    "shapings",
    "reward.shaping",
    {
        "none": "skillpress.skills.shaping:NoShaping",
        "constant": "skillpress.skills.shaping:Constant",
        "round_length": "skillpress.skills.shaping:RoundLength",
        "rounds": "skillpress.skills.shaping:Rounds",
        "segcost": "skillpress.skills.shaping:SegmentationCost",
        "bits": "skillpress.skills.bits:Bits",
    },
)
"""``reward.shaping`` to the class, which is made from λ and T."""

EPISODES = Registry(
    "",
    "imitation.episodes",
    {
        "files": "skillpress.logs.episodes:gather",
    },
)
"""The reader of ``imitation.episodes``. It has one entry, so that only an experiment that names
files depends on the readers of logs."""

ALGORITHMS = Registry(
    "algorithms",
    "algorithm.name",
    {
        "grpo": "skillpress.training.algorithms.grpo:GRPO",
        "rloo": "skillpress.training.algorithms.rloo:RLOO",
        "reinforce_pp": "skillpress.training.algorithms.reinforce_pp:ReinforcePP",
        "ppo": "skillpress.training.algorithms.ppo:PPO",
        "gigpo": "skillpress.training.algorithms.gigpo:GiGPO",
        "dr_grpo": "skillpress.training.algorithms.dr_grpo:DrGRPO",
        "dapo": "skillpress.training.algorithms.dapo:DAPO",
        "expert_iteration": "skillpress.training.algorithms.expert_iteration:ExpertIteration",
        "gspo": "skillpress.training.algorithms.gspo:GSPO",
        "cispo": "skillpress.training.algorithms.cispo:CISPO",
    },
    "advantages",
)
"""``algorithm.name`` to the class, which is its section."""

SELECTIONS = Registry(
    "selections",
    "algorithm.select.name",
    {
        "none": "skillpress.training.algorithms.selections.none:NoSelection",
        "varied_groups": "skillpress.training.algorithms.selections.varied_groups:VariedGroups",
        "dynamic_sampling": "skillpress.training.algorithms.selections.dynamic_sampling:DynamicSampling",
    },
    "kept",
)
"""``algorithm.select.name`` to the class, which is its section."""

RENDERINGS = Registry("renderings", "policy.rendering", {})
"""``policy.rendering`` to a function from the ``environment`` section and the number of past turns shown to a
``Rendering``, for renderings from outside; an environment's own are methods of its section."""

EXPERIENCES = Registry(
    "experiences",
    "experience.name",
    {
        "none": "skillpress.training.experience.parameters:NoExperienceParameters",
        "erl": "skillpress.training.experience.erl:ERLParameters",
    },
    "model_validate",
)
"""``experience.name`` to the class of its section, which makes the method."""


def registries() -> list[Registry]:
    """All tables of this file."""
    return [table for table in globals().values() if isinstance(table, Registry)]
