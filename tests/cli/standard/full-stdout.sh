# A device that is full, for the result and for the help.
sample "$kind" in.h5
tool in.h5 > /dev/full && exit 99
tool --help > /dev/full
