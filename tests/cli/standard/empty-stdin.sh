# only hdf5 input
tool - -o out.h5 < /dev/null || status=$?
test ! -e out.h5
exit "$status"
