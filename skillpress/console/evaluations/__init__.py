"""Evaluations without an experiment: playing any model, reading what was played, comparing two of them."""
