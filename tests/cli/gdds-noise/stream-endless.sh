# An endless stream ends quietly when its reader goes away, and is not written into a file.
set +o pipefail
make-sample tokens > t.h5
gdds-noise -q --batch-size 64 t.h5 | head -c 300000 | wc -c
echo "${PIPESTATUS[@]}"
gdds-noise --batch-size 64 t.h5 -o endless.h5 || echo "exit $?"
gdds-noise --batch-size 64 t.h5 > endless.h5 || echo "exit $?"
test ! -s endless.h5
gdds-noise --batches 3 t.h5 | wc -c
