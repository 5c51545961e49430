"""What the studies calculate from their records: verdicts on claims, signs of behaviour, and compression
against the gap between seen and unseen tasks."""
