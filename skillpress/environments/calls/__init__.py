"""Calls of tools as skills: what a response does, a shell's lines as commands, and tables of rules."""

from __future__ import annotations
