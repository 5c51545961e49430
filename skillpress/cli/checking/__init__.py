"""``skillpress check``: a trial of an environment before a policy is trained in it."""
