"""`python -m whygrad` is `whygrad`."""

from whygrad.cli import main

if __name__ == "__main__":
    main()
