"""A study of methods: its plan, the outcomes that a claim may name, and Holm's correction.

The plan (such as ``params/study/``) states before the first run how claims are decided.
"""
