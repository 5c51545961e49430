"""The page that an experiment ends with: one HTML file that needs no network.

:func:`render_report` draws a :class:`ReportData`. One experiment (one method, one seed) and an
ablation (methods x seeds) are the same page: results are grouped by method, and where a method has
several seeds their mean and their range are shown.
"""

from __future__ import annotations

from skillpress.show.report.data import Curve, Example, ExampleStep, PolicyResult, ReportData, Scaling
from skillpress.show.report.page import render_report

__all__ = ["Curve", "Example", "ExampleStep", "PolicyResult", "ReportData", "Scaling", "render_report"]
