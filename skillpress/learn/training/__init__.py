"""Reinforcement learning: samples, learner, the step, the loop around it.

What describes a training and what it keeps on disk have rooms of their own, ``describing`` and ``keeping``.
An edit there changes no weight.
"""
