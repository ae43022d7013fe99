"""The command line: `main` holds the table of commands, each of which has a module of its own."""
