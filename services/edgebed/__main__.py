"""`python -m edgebed` is the command `edgebed`."""

from edgebed.cli import main

if __name__ == "__main__":
    main()
