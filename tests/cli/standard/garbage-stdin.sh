# only hdf5 input
yes garbage | head -c 10000 | tool - -o out.h5 || status=$?
test ! -e out.h5
exit "$status"
