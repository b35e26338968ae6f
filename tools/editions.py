"""Bring the Chinese editions up to date: see `book.editions`, or `python tools/editions.py
--help`.
"""

from book.editions import main

if __name__ == "__main__":
    main()
