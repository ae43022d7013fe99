"""The command `opc`, as installed and as `python -m opc`.

Nothing is imported here but by `main`: Ctrl-C while the command line is still being imported ends as quietly as later.
"""


def main() -> None:
    """Run the command line."""
    try:
        from opc.cli import main as run

        run()
    except KeyboardInterrupt:
        from opc.cli_console import INTERRUPTED, note

        note("interrupted")
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
