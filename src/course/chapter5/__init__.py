"""Chapter 5, RoPE frequencies: its measurements, figures, claims and checks."""
