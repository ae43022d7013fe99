// A library of the SDK of which the emulation has nothing, but which programs link.
