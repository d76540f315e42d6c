# A stream of batches through two copies; a stream of one batch is a file.
make-sample snapshots --batches 5 | gdds-copy --stream | gdds-copy --stream > s.h5
make-sample snapshots --batches 5 -o t.h5
gdds-copy --stream t.h5 -o u.h5
gdds-copy --stream u.h5 > v.h5
cmp s.h5 v.h5
make-sample snapshots --batches 1 | gdds-copy > one.h5
h5dump -H one.h5 > /dev/null
