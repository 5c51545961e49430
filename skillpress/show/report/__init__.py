"""The page at the end of an experiment: one HTML file that needs no network.

:func:`render_report` draws a :class:`ReportData`. One experiment (one method, one seed) and an ablation
(methods x seeds) use the same page: results are grouped by method, and a method with several seeds shows
their mean and their range.
"""

from __future__ import annotations

from skillpress.show.report.data import Curve, Example, ExampleStep, PolicyResult, ReportData, Scaling
from skillpress.show.report.page import render_report

__all__ = ["Curve", "Example", "ExampleStep", "PolicyResult", "ReportData", "Scaling", "render_report"]
