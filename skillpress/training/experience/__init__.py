"""Further attempts that training plays beside its algorithm's rollouts, and the lessons they give."""
