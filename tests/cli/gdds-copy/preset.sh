# Presets by file and by name; what they set is in the history as if it had been typed.
mkdir -p share/presets/gdds-copy
echo 'kind = tokens' > share/presets/gdds-copy/strict.conf
make-sample tokens > t.h5
make-sample vocab > v.h5
export GDDS_SHARE=$PWD/share
gdds-copy --config strict t.h5 > a.h5
gdds-copy --config share/presets/gdds-copy/strict.conf t.h5 | cmp - a.h5
gdds-copy --kind tokens t.h5 | cmp - a.h5
gdds-copy --config strict --kind vocab v.h5 > /dev/null
echo 'threads = many' > share/presets/gdds-copy/wrong.conf
gdds-copy --config wrong t.h5 > /dev/null || echo "exit $?" >&2
gdds-copy --config strict v.h5
