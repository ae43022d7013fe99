"""From families to built packages: toolchain, generated files, ninja, locks, and finding out that nothing changed."""
