"""Compute what the pages of chapter 2, "Causal attention as a graph"."""
