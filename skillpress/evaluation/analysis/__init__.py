"""Descriptions of a dictionary or a policy that decide nothing: bounds, bits, drift."""
