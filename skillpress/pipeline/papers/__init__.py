"""A paper's tables from its manifest: the runs that they need, their cost, and the check of finished runs."""
