"""Plain values that the packages pass to each other. Imports nothing of ours."""
