"""What people look at: the report, the viewer, the page of any agent's routines.

It imports ``measure`` and what is below.
"""
