# only hdf5 input
sample "$kind" whole.h5
head -c -100 whole.h5 | tool - -o out.h5 || status=$?
test ! -e out.h5
exit "$status"
