"""How a policy changes: algorithms, training, imitation, experience, reverse parsing.

It imports ``models`` and what is below.
"""
