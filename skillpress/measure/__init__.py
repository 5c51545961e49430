"""Figures: success rates, intervals and tests, the papers' tables, analysis, judges, the study's statistics.

It imports ``experiment`` and what is below.
"""
