"""Pages for people: the report, the viewer, and the page on the routines of any agent.

It imports ``evaluation`` and what is below.
"""
