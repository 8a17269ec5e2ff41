"""`python -m edgebed`, and the command `edgebed`: nothing is imported before Ctrl-C is understood."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from edgebed.cli.main import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
