"""L0's tables of question answering: its printed figures, their errors, and the same figures of answers."""

from __future__ import annotations

from skillpress.evaluation.paper.figures import EnvironmentFigures
from skillpress.evaluation.paper.layout import PaperPanel
from skillpress.evaluation.paper.notebook_qa.behavior import notebook_behavior
from skillpress.evaluation.paper.notebook_qa.scores import printed_in_1, printed_in_2, table_1, table_2

FIGURES = EnvironmentFigures(
    panels=(
        PaperPanel(12, "Question answering", table_2, printed_in_2),
        PaperPanel(13, "Question answering", table_1, printed_in_1),
    ),
    behavior=notebook_behavior,
)
