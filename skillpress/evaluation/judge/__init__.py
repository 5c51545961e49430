"""A model as judge where words alone do not decide: is an answer right, or a question objective?

A judge decides no episode and no reward. ``simpleqa.py`` grades answers for a table, and an edit there reruns
no stage. ``objectivity.py`` drops questions, and only if the user asks for it. Each module defines the
judge's prompt and how its verdict is read; ``verdicts.py`` asks an engine.
"""
