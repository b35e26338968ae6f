"""Chapter 6, the Differential Transformer: its measurements, figures, claims and checks."""
