"""A study of methods: its plan, its record, and the statistics in the plan.

The plan (``params/study/``) states before the first run how claims are decided. This package reads only the
plan and the record of finished runs.
"""
