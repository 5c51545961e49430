"""Finished runs: reading them, comparing them, and the tables of the paper made from them."""
