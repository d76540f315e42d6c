# A long stream whose reader stops early ends quietly, as head ends its writer.
set +o pipefail
make-sample snapshots --sequences 1000 --batches 1000 | gdds-copy --stream | head -c 100000 | wc -c
echo "${PIPESTATUS[@]}"
