"""Compute and draw for the pages of chapter 5, "RoPE frequencies"."""
