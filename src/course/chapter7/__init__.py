"""Chapter 7, the Differential Transformer: its measurements, figures, claims and checks."""
