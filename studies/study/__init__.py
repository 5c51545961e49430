"""The results of the study: its record, and the tables and figures of docs/study.md that are made from it.

``python -m studies.study`` makes them again from ``outcomes.parquet`` and ``runs.json`` of this folder and
from the plan alone. Text between markers on the page is generated; the rest is written.
"""
