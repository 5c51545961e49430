"""Environments on other machines: the trainer keeps the policy, and other machines run its environments.

A machine offers slots (``skillpress serve-workers``). A slot is a connection, and it holds one episode at a
time. The messages follow the environment's contract: a task, an action, and the answer to each. ``values.py``
writes answers as JSON, so that nothing from another machine is unpickled. ``slot.py`` is one connection,
``pool.py`` divides the episodes among the machines, and ``environment.py`` replays an episode on another
machine if its own is lost. A collector treats them like all other environments.
"""

from __future__ import annotations
