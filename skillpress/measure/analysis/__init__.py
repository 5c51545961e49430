"""What describes a dictionary or a policy and decides nothing: bounds, bits, drift."""
