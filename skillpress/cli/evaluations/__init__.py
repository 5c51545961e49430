"""Evaluations without an experiment: playing any model, reading its episodes, comparing two models."""
