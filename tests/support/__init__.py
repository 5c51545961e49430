"""What tests in several folders share; packages are named as the wings whose tests they serve."""
