"""The plain values that travel between the packages. Imports nothing of ours."""
