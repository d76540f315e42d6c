tool absent.h5 -o out.h5 || status=$?
test ! -e out.h5
exit "$status"
