"""What came out, in MLflow."""
