"""Leafing through episodes: an index over rollout files, and a page that shows them.

``catalogue`` opens files and answers, ``server`` lets a page on this machine ask, ``embedded`` writes a page
with a sample of episodes in it. What a page is given stands in ``records``; the page is in ``page/``.
"""
