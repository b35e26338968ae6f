"""Compute and draw for the pages of chapter 3, "Representational collapse"."""
