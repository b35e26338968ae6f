"""Define claims and decide what their evidence supports, with rules, controls and tests."""
