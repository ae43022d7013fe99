"""`opc package`: ops as a wheel that installs and runs without opc and without a compiler."""
