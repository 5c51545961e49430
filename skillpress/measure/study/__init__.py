"""A study of methods: its plan, its record, and the statistics that the plan asks for.

What decides a claim is written in the plan (``params/study/``) before the first run. Everything here reads
the plan and the record of finished runs and nothing else.
"""
