# SIGINT while the output is half made: the temporary file goes, the old file stays.
make-sample tokens > in.h5
echo precious > out.h5
timeout --preserve-status --signal INT 0.5 gdds-copy --pause 5 in.h5 -o out.h5 || echo "$?"
cat out.h5
