"""Everything that is worth measuring on one GPU: ``python -m benchmarks.gpu``, see ``__main__.py``."""
