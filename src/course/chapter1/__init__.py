"""Chapter 1, over-squashing: its figures, measurements, claims and checks."""
