"""Sending what a collector has stored to ClickHouse. Not imported without [cluster]."""
