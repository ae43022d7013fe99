"""The command `opc`, as installed and as `python -m opc`.

Nothing of opc is imported here but by `main`: Ctrl-C while the command line is still being imported ends as quietly as later.
"""

import gc


def main() -> None:
    """Run the command line."""
    try:
        # What is imported and read stays for the whole run: by the default threshold, 700, all of it is looked through time and
        # again for garbage, and next to none is found.
        gc.set_threshold(5_000_000)
        from opc.cli.main import main as run

        run()
    except KeyboardInterrupt:
        from opc.cli.console import INTERRUPTED, note

        note("interrupted")
        raise SystemExit(INTERRUPTED) from None
    finally:
        # The process ends, and gives its memory back whole: the interpreter need not look for garbage in it once more.
        gc.freeze()


if __name__ == "__main__":
    main()
