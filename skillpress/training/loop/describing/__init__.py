"""Descriptions of a training that do not change it: metrics, probes, and episodes for people to read."""
