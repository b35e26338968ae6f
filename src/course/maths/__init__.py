"""Compute the mathematics that several chapters share, with the field's names for functions."""
