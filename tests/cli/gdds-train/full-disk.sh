# The disk fills up while the second checkpoint is saved: an error in one line, and the first one stays, whole.
sample tokens tokens.h5 --sequences 16
options=(-q -j 1 --size tiny --model-dim 32 --model-heads 2 --precision fp32 --batch-size 4 --warm-up 2 --save-every 1 --steps 2)
gdds-train "${options[@]}" tokens.h5 -o whole.h5
size=$(stat -c %s whole.h5)
for share in 110 130 150 190; do
  rm -f m.h5
  status=0
  FULL_DISK_BYTES=$((size * share / 100)) LD_PRELOAD=$bin/full_disk.so gdds-train "${options[@]}" tokens.h5 -o m.h5 2>err || status=$?
  echo "$status $(cat err) $(gdds-model info m.h5 | grep '^step')"
  gdds-copy -q m.h5 >copy.h5
done
