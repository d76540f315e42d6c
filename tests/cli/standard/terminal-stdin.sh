# Nor read from one.
script -qec "$command $options - -o out.h5 2> err" /dev/null > screen || status=$?
cat err >&2
test ! -e out.h5
exit "$status"
