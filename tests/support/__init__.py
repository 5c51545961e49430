"""Code that tests in several folders share; each package has the name of the wing whose tests use it."""
