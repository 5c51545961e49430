"""L0's tables of question answering: its printed figures, their errors, and the same figures of answers."""

from __future__ import annotations

from skillpress.evaluation.paper.figures import EnvironmentFigures
from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.paper.notebook_qa.behavior import notebook_behavior
from skillpress.evaluation.paper.notebook_qa.scores import printed_row, table_2

FIGURES = EnvironmentFigures(
    panels=(PaperPanel(12, "Question answering", table_2, printed_row),), behavior=notebook_behavior
)
