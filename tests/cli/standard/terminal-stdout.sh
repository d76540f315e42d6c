# only hdf5 output
# Binary data are not written to a terminal.
sample "$kind" in.h5
script -qec "$command $options in.h5 2> err" /dev/null > screen || status=$?
cat err >&2
test ! -s screen
exit "$status"
