"""Who answers: policies and the scoring of responses, the engines that sample, macro policies.

It imports ``environments``, ``play``, ``skills`` and ``core``.
"""
