"""This lab's own environment and algorithm; params/ names them as ``module:name``."""
