"""Reinforcement learning: samples, learner, the step, the loop around it.

The folder ``describing`` describes a training and ``keeping`` stores it on disk. An edit there changes no
weight.
"""
