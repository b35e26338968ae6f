"""Define a claim and what its evidence supports: rules, null controls, significance, sources."""
