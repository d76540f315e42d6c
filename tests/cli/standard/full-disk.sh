# The disk fills up before anything, a third and two thirds of the result are written: an error, the old file stays,
# nothing new is left.
sample "$kind" in.h5
echo precious > out.h5
tool in.h5 > reference
size=$(stat -c %s reference)
for bytes in 0 $((size / 3)) $((size * 2 / 3)); do
  FULL_DISK_BYTES=$bytes LD_PRELOAD=$bin/full_disk.so tool in.h5 -o out.h5 2> err && exit 99
  grep -Eqx "${command%% *}: out.h5: cannot write: No space left on device" err || cat err
  grep -qx precious out.h5
done
FULL_DISK_BYTES=$((size * 100)) LD_PRELOAD=$bin/full_disk.so tool in.h5 -o out.h5
cmp reference out.h5
