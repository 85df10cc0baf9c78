"""Readers for other programs' files."""
