"""Compute and draw for the pages of chapter 4, "Counting"."""
