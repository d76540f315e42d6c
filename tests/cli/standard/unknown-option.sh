# An option that is not there, and no guessing at one that is.
tool --no-such-option
