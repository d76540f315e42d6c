# What a snapshots file holds; the same bytes for any number of threads, from a file or a pipe; another seed, other noise.
make-sample tokens --sequences 300 > t.h5
gdds-noise t.h5 > s.h5
gdds-noise noise -q -j 1 t.h5 | cmp - s.h5
cat t.h5 | gdds-noise -q -j 2 - | cmp - s.h5
gdds-noise -q --seed 2 t.h5 > other.h5
python3 - <<'PY'
import h5py, numpy as np
f, t, other = h5py.File("s.h5"), h5py.File("t.h5"), h5py.File("other.h5")
for path in ("x0", "xt", "time", "jumped", "sequence", "lengths"): print(path, f[path].dtype, f[path].shape)
print(sorted(f["vocab"].attrs), sorted(f["process"].attrs), f["process"].attrs["name"], f["process"].attrs["states"])
x0, xt, jumped, time = (f[name][:] for name in ("x0", "xt", "jumped", "time"))
mask = t["vocab"].attrs["mask"]
assert np.array_equal(x0, t["tokens"][:]) and np.array_equal(f["sequence"][:], np.arange(300))
assert np.array_equal(xt, np.where(jumped, mask, x0))  # absorb
assert 0.001 <= time.min() and time.max() <= 1 and len(set(time)) == 300
share = jumped.mean(axis=1)  # of a sequence, about 0.999 t
assert abs(np.mean(share - 0.999 * time)) < 0.03 and np.corrcoef(share, time)[0, 1] > 0.8
assert not np.array_equal(xt, other["xt"][:]) and not np.array_equal(time, other["time"][:])
PY
