"""What stands behind the pages of chapter 2, "Causal attention as a graph"."""
