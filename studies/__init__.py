"""This repository's own studies: their records, their statistics, and the code that makes tables and figures.

A study's plan is in ``params/``, and its page in ``docs/``. The library, the tasks and the flows import
nothing of this package.
"""
