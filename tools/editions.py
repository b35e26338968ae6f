"""Update the Chinese editions (see `book.editions`, or `python tools/editions.py --help`)."""

from book.editions import main

if __name__ == "__main__":
    main()
