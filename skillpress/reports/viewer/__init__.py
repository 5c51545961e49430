"""A viewer of episodes: an index over rollout files, and a page that shows them.

``catalogue`` opens files and answers questions, ``server`` serves a page on this machine, and ``embedded``
writes a page that contains a sample of episodes. ``records`` defines the page's data; the page is in
``page/``.
"""
