"""From an experiment's parameters to its parts, built once and handed over.

The jobs (imitation, collection, training) are described here and run by ranks; what a rank needs of
torch is imported in the rank, so that a stage that only waits for its ranks starts in a second.

It imports ``learn`` and what is below.
"""
