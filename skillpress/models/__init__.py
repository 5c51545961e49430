"""Models: policies and the scoring of responses, the engines that sample, and macro policies.

This package imports ``environments``, ``play``, ``skills`` and ``core``.
"""
