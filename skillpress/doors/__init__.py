"""Formats and protocols of other projects: logs of any agent, exports, OpenEnv, gymnasium, TRL.

It imports ``learn`` and what is below.
"""
