"""The results of the study: its record, and the tables and figures of docs/study.md that are made from it.

``python -m docs.study`` makes them anew from ``outcomes.parquet`` and ``runs.json`` of this folder and from
the plan alone. What stands between markers on the page is made; the rest is written.
"""
