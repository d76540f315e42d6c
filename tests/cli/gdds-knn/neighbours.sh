# Points on a line: neighbours, distances and bandwidths that can be checked by eye; every method and number of threads.
python3 - <<'PYTHON'
import h5py, numpy as np
with h5py.File("e.h5", "w") as f:
    f.attrs["gdds_kind"], f.attrs["gdds_schema"] = "embedding", 1
    v = f.create_group("vocab")
    v.attrs["name"], v.attrs["hash"], v.attrs["size"] = "line", "0" * 32, 6
    f["embedding"] = np.array([[0], [1], [3], [7], [15], [31]], dtype="f4")
PYTHON
gdds-knn --k 2 --bandwidth-neighbour 1 --ranking raw e.h5 -o raw.h5
gdds-knn -q --k 2 --bandwidth-neighbour 1 --ranking normalised e.h5 -o ranked.h5
gdds-knn -q --k 2 --bandwidth-neighbour 1 --ranking raw --method faiss -j 3 e.h5 | cmp - raw.h5
for name in raw ranked; do
  python3 -c "
import h5py, sys
f = h5py.File(sys.argv[1])
print(f['ids'][()].tolist(), f['distances'][:, 0].tolist(), f['bandwidths'][()].tolist(), dict(f['ids'].attrs)['ranking'])" $name.h5
done
