"""Multi-hop question answering by code: L0's notebook agent with search, behind a sandbox's walls.

``environment.py`` runs the cells; ``notebook.py`` is the interpreter as the agent finds it, ``actions.py``
what an action may say, ``desk.py`` and ``candidates.py`` what lies before a policy that reads no English.
``answers.py`` says when an answer is right, ``questions.py`` which questions are fit to be asked,
``difficulty.py`` how hard they are, ``tasks.py`` which become tasks, ``search/`` what may be looked up. A
judge that grades answers for a table decides no episode and stands in ``skillpress/measure/judge``.
"""

from __future__ import annotations

from pathlib import Path

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.notebook_qa.compact import compact, vocabulary
from skillpress.environments.notebook_qa.environment import MEASURES, explorer_actions, make, share
from skillpress.environments.notebook_qa.oracle import oracle
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters, data_identity
from skillpress.environments.notebook_qa.prompts import paper, text
from skillpress.environments.notebook_qa.skills import NotebookProjection
from skillpress.environments.notebook_qa.tasks import check_tasks, dropped, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=NotebookQaParameters,
    make=make,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=NotebookProjection(),
    renderings={"compact": compact, "text": text, "paper": paper},
    vocabulary=vocabulary,
    oracle=oracle,
    explorer_actions=explorer_actions,
    hosting="threads",
    share=share,
    measures=MEASURES,
    notepad=True,
    code=(
        Path("skillpress/environments/remembered.py"),
        Path("skillpress/environments/sandboxed.py"),
        Path("skillpress/play/sandbox"),
    ),
    libraries=("tantivy",),
    data=data_identity,
    dropped=dropped,
)
