"""The stages of dvc.yaml, one module each: ``main(stage)`` computes and writes its files."""
