# only hdf5 input
# One bit flipped, at 60 places: reported, or the result is the same.
sample "$kind" in.h5
tool $no_history in.h5 > good.h5
size=$(stat -c %s in.h5)
reported=0
for ((i = 0; i < 60; i++)); do
  at=$(((i * 7919 + 13) % size)) bit=$((1 << i % 8))
  cp in.h5 bad.h5
  byte=$(od -An -tu1 -j $at -N 1 in.h5)
  printf "\\x$(printf %02x $((byte ^ bit)))" | dd of=bad.h5 bs=1 seek=$at conv=notrunc status=none
  status=0
  tool $no_history bad.h5 > out.h5 2> err || status=$?
  case $status in
    0) cmp good.h5 out.h5 ;;
    3) reported=$((reported + 1)); test "$(wc -l < err)" = 1; test ! -s out.h5 ;;
    *) echo "byte $at: exit status $status"; cat err ;;
  esac
done
test "$reported" -gt 30
