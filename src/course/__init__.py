"""What this book is made of: its chapters, the scorecard that gathers them, the report on any decoder, the experiments."""
