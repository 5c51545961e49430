"""Imitation of an oracle: its demonstrations, the data set made of them, and the trainer."""
