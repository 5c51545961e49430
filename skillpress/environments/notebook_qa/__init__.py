"""Multi-hop question answering by code: L0's notebook agent with search, behind a sandbox's walls.

``environment.py`` runs the cells. ``notebook.py`` prepares the agent's interpreter, and ``actions.py`` reads
actions. ``desk.py`` and ``candidates.py`` hold what is shown to a policy that reads no English.
``answers.py`` decides whether an answer is right, ``questions.py`` which questions are suitable,
``difficulty.py`` how hard they are, and ``tasks.py`` which of them become tasks. ``search/`` holds the
search. A judge that grades answers for a table affects no episode; it is in ``skillpress/measure/judge``.
"""

from __future__ import annotations

from skillpress.environments.bundle import EnvironmentBundle
from skillpress.environments.notebook_qa.compact import CompactRendering, vocabulary
from skillpress.environments.notebook_qa.environment import MEASURES, explorer_actions, make, share
from skillpress.environments.notebook_qa.oracle import CompactOracle
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters, data_identity
from skillpress.environments.notebook_qa.prompts import OWN, PAPER, notebook
from skillpress.environments.notebook_qa.skills import NotebookProjection
from skillpress.environments.notebook_qa.tasks import check_tasks, dropped, make_tasks

BUNDLE = EnvironmentBundle(
    parameters=NotebookQaParameters,
    make=make,
    make_tasks=make_tasks,
    check_tasks=check_tasks,
    projection=NotebookProjection(),
    renderings={
        "compact": lambda section, history: CompactRendering(history),
        "text": notebook(OWN),
        "paper": notebook(PAPER),
    },
    vocabulary=vocabulary,
    oracle=CompactOracle,
    explorer_actions=explorer_actions,
    hosting="threads",
    share=share,
    measures=MEASURES,
    notepad=True,
    libraries=("tantivy",),
    data=data_identity,
    dropped=dropped,
)
