"""Compute and draw for the pages of chapter 1, "Over-squashing"."""
