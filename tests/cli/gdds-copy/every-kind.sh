# A file of each kind, plain and compressed; h5py reads all of it.
for kind in vocab tokens embedding neighbours process snapshots model samples; do
  make-sample $kind > in.h5
  gdds-copy --compress 9 in.h5 | gdds-copy --kind $kind > out.h5
  python3 - in.h5 out.h5 <<'PYTHON'
import h5py, sys
import numpy as np
a, b = (h5py.File(name, "r") for name in sys.argv[1:])
seen = []
def check(path, item):
    other = b[path]
    assert sorted(item.attrs) == sorted(other.attrs), path
    for name in item.attrs:
        assert item.attrs[name] == other.attrs[name], (path, name)
    if isinstance(item, h5py.Dataset) and path != "history":
        assert item.dtype == other.dtype and item.fletcher32 and np.array_equal(item[()], other[()]), path
        seen.append(path)
a.visititems(check)
print(a.attrs["gdds_kind"].decode() if isinstance(a.attrs["gdds_kind"], bytes) else a.attrs["gdds_kind"], len(seen))
PYTHON
done
