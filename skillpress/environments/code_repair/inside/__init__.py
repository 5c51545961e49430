"""Code that runs inside sandboxes: sent there as text, standard library only, and never imported by the host.

``candidate.py`` runs the judged program, in a sandbox that contains no test. ``examiner.py`` runs the tests,
in a sandbox in which no agent's code ever runs. ``values.py`` is loaded into both.
"""
