"""Alerts: what the rules look at, what is said of it in which language, and how it is written."""
