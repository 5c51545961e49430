"""Formats and protocols of others: logs of any agent, exports, OpenEnv, gymnasium, TRL.

It imports ``learn`` and what is below.
"""
