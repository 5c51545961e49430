"""Skills that agents read: the routines of a log as folders with a SKILL.md, each with its evidence."""
