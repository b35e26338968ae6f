"""Chapter 3, representational collapse: its figures, claims and checks."""
