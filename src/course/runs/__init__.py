"""Run the experiments that fill the tables in `data/`, with one module per subject.

A run that was stopped continues where it stopped.
"""
