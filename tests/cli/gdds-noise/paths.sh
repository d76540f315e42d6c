# Whole paths, of every process: offsets, times and states fit together, and with x_t and jumped.
make-sample tokens --sequences 300 > t.h5
make-sample embedding > e.h5
gdds-knn -q --k 3 --bandwidth-neighbour 2 e.h5 -o n.h5
seq 1 11 > rates
paths() {
  gdds-noise -q --paths "$@" t.h5 > p.h5
  gdds-noise -q --paths -j 1 "$@" t.h5 | cmp - p.h5
  python3 - <<'PY'
import h5py, numpy as np
f = h5py.File("p.h5")
x0, xt, jumped, time, offsets, times, states = (f[n][:] for n in ("x0", "xt", "jumped", "time", "path/offsets", "path/times", "path/states"))
n, L = x0.shape
assert offsets.shape == (n, L + 1) and offsets[0, 0] == 0 and offsets[-1, -1] == len(times) == len(states)
assert (np.diff(offsets, axis=1) >= 0).all() and np.array_equal(offsets[1:, 0], offsets[:-1, -1])
assert states.max() < f["process"].attrs["states"] and f["xt"].dtype == f["path/states"].dtype == np.uint16
for s in range(n):
    for l in range(L):
        a, b = offsets[s, l], offsets[s, l + 1]
        assert jumped[s, l] == (b > a) and xt[s, l] == (states[b - 1] if b > a else x0[s, l])
        assert (np.diff(times[a:b]) > 0).all() and (b == a or 0 < times[a] and times[b - 1] <= time[s])
print(f["process"].attrs["name"].decode(), f["process"].attrs["states"], len(times) > 500)
PY
}
paths
paths --process uniform
paths --process hybrid --hybrid-share 0.5
paths --process sik-knn --neighbours n.h5
paths --process sik-dense --neighbours n.h5 --embedding e.h5 --epsilon 1 --epsilon-end 0.1
paths --process hierarchical --clusters 3 --embedding e.h5
paths --process mask-rates --mask-rates rates
paths --process mask-rates --mask-rates rates --mask-form power --schedule cosine
gdds-noise -q --process sik-knn --neighbours n.h5 t.h5 > s.h5
gdds-noise -q --process sik-knn --neighbours n.h5 --paths t.h5 > p.h5
python3 - <<'PY'
import h5py, numpy as np
s, p = h5py.File("s.h5"), h5py.File("p.h5")
assert np.array_equal(s["time"][:], p["time"][:]) and not np.array_equal(s["xt"][:], p["xt"][:])  # other draws,
assert abs(s["jumped"][:].mean() - p["jumped"][:].mean()) < 0.04  # of the same law
PY
