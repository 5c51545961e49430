"""What describes a dictionary or a policy and decides nothing: guarantees, bits, drift."""
