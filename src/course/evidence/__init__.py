"""What a claim is and what its evidence supports: rules, null controls, significance, sources."""
