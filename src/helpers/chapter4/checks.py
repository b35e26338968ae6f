"""What is behind the exercises of chapter 4."""
