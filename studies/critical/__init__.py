"""The critical experiment's results: its record, and the tables and figures that are made from it.

``python -m studies.critical`` makes them again, in docs/critical_experiment.md and docs/figures/, from the
plan in params/critical/ and from the record and the predictions of this folder. Text between markers on the
page is generated; the rest is written.
"""
