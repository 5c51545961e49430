"""Results in MLflow."""
