"""Compute and draw for the pages of chapter 6, "The Differential Transformer"."""
