"""Chapter 4, counting: its measurements, figures, claims and checks."""
