"""Pages for people: the report, the viewer, and the page on the routines of any agent.

It imports ``measure`` and what is below.
"""
