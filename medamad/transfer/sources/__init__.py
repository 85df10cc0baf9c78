"""Readers for the files of other programs."""
