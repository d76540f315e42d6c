# What lies beyond a sequence's length stays as it is; and a file without lengths has none.
make-sample tokens --sequences 50 > full.h5
python3 - <<'PY'
import h5py, numpy as np, shutil
for name in ("t.h5", "none.h5"):
    shutil.copy("full.h5", name)
    with h5py.File(name, "r+") as f:
        del f.attrs["gdds_digest"], f["history"], f["lengths"]
        if name == "t.h5": f["lengths"] = np.arange(50, dtype="i4") % 8
PY
gdds-noise --time 0.9 t.h5 > s.h5
gdds-noise -q --time 0.9 --paths t.h5 > p.h5
gdds-noise --time 0.9 none.h5 > n.h5
python3 - <<'PY'
import h5py, numpy as np
s, p, n = (h5py.File(name) for name in ("s.h5", "p.h5", "n.h5"))
counts = np.arange(7)[None, :] < (np.arange(50) % 8)[:, None]
for f in (s, p):
    assert np.array_equal(f["lengths"][:], np.arange(50) % 8)
    assert np.array_equal(f["xt"][:][~counts], f["x0"][:][~counts]) and not f["jumped"][:][~counts].any() and f["jumped"][:][counts].mean() > 0.8
assert not np.diff(p["path/offsets"][:], axis=1)[~counts].any()
assert "lengths" not in n and np.array_equal(n["xt"][:][counts], s["xt"][:][counts])
PY
