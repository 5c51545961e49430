"""Reinforcement-learning algorithms, one file each, and the files that several of them share."""
