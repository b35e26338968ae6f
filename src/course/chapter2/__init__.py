"""Compute and draw for the pages of chapter 2, "Causal attention as a graph"."""
