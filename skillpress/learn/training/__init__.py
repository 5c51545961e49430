"""Reinforcement learning: samples, learner, the step, the loop around it, and its checkpoints."""
