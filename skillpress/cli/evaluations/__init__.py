"""Evaluations without an experiment: play any model, read its episodes, compare two models."""
