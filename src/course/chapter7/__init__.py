"""Compute and draw for the pages of chapter 7, the race."""
