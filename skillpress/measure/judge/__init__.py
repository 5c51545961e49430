"""A model that judges what words alone do not show: whether an answer is right, or a question objective.

It decides no episode and no reward. ``simpleqa.py`` grades answers for a table, and an edit there reruns no
stage; ``objectivity.py`` drops questions, and only where somebody asks for it. Each says what the judge is
asked and how its verdict is read; ``asking.py`` puts the prompts to an engine or to a server.
"""
