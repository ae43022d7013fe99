"""`opc bench`: contenders, timing in turn, the processes that measure, and reports."""
