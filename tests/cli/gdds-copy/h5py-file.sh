# A file written by h5py, in its own default form (old superblock, variable-length strings), is as good as ours.
python3 - <<'PYTHON'
import h5py, numpy as np
with h5py.File("mine.h5", "w") as f:
    f.attrs["gdds_kind"] = "tokens"
    f.attrs["gdds_schema"] = 1
    f["tokens"] = np.arange(12, dtype="int32").reshape(3, 4)
    f["note"] = "my own"
    v = f.create_group("vocab")
    v.attrs["name"], v.attrs["hash"], v.attrs["size"] = "mine", "0" * 32, 12
PYTHON
gdds-copy mine.h5 > a.h5
cat mine.h5 | gdds-copy --no-history > b.h5
h5dump -d /tokens b.h5 | grep '(2,0)'
h5dump -d /history -b LE -o /dev/stderr a.h5 2>&1 > /dev/null | jq -r .command | sed 's/> .*/>/'
python3 -c "
import h5py
f = h5py.File('mine.h5', 'r+')
f['tokens'][0, 0] = 7
del f['tokens']
f['tokens'] = [[1.5]]"
gdds-copy mine.h5
