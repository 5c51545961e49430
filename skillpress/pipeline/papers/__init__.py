"""A paper's tables by its manifest: the runs that they need, their cost, and the check of what ran."""
