"""``skillpress check``: test an environment before a policy is trained in it."""
