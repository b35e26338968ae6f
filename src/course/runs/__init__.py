"""Fill the tables of `data/`: one module a subject, one line each, which goes on where it
stopped.
"""
