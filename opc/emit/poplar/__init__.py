"""Programs for Poplar as C++: the bodies that adapters of PopART and PopXL call, and their codelets."""
