"""What describes a training and decides nothing in it: metrics, probes, and episodes for people to read."""
