"""The C++ kernel that every backend links."""
