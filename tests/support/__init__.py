"""Code that tests in several folders share; each package has the name of the layer whose tests use it."""
