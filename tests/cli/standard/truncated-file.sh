# only hdf5 input
sample "$kind" whole.h5
head -c -100 whole.h5 > in.h5
tool in.h5 -o out.h5 || status=$?
test ! -e out.h5
exit "$status"
