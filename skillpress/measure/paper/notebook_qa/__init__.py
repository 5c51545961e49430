"""L0's tables of question answering: its printed figures with their errors, and the same figures of answers.

The tables of the report are ReuseRL's, so question answering has no row in them. It has only its own
behaviour figures.
"""

from __future__ import annotations

from skillpress.measure.paper.figures import EnvironmentFigures
from skillpress.measure.paper.notebook_qa.behavior import notebook_behavior

FIGURES = EnvironmentFigures(behavior=notebook_behavior)
