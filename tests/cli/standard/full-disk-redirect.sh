# The disk fills up while the result is copied to a redirected standard output: nothing of it stays there.
sample "$kind" in.h5
tool in.h5 > reference
size=$(stat -c %s reference)
echo before > out
FULL_DISK_BYTES=$((size * 3 / 2)) LD_PRELOAD=$bin/full_disk.so tool in.h5 >> out 2> err && exit 99
grep -qx before out
grep -Eqx "${command%% *}: (standard output|temporary file.*): cannot write: No space left on device" err || cat err
