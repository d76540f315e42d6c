# Broken streams are named by their batch.
make-sample snapshots --batches 3 > s.h5
make-sample tokens > t.h5
size=$(($(stat -c %s s.h5) / 3))
attempt() { gdds-copy --stream "$@" > /dev/null || echo "exit $?"; }
head -c $((size * 2 + 50)) s.h5 | attempt
head -c $((size * 3 - 1)) s.h5 | attempt
(head -c $((size * 2)) s.h5; echo; tail -c $size s.h5) | attempt
cat s.h5 t.h5 | attempt --kind snapshots
cat s.h5 t.h5 | attempt
attempt < /dev/null
