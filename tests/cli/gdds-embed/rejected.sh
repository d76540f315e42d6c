# What is wrong with a source or a command line: one line, and nothing is written.
attempt() { gdds-embed "$@" > out || echo "exit $?"; test ! -s out; }
python3 - <<'PY'
import json, struct
import numpy as np
numbers = np.arange(54, dtype="<f4").reshape(27, 2)
np.save("good.npy", numbers)
np.save("short.npy", numbers[:20])
np.save("long.npy", np.concatenate([numbers, numbers]))
np.save("fortran.npy", np.asfortranarray(numbers))
np.save("integers.npy", numbers.astype("<i4"))
np.save("cube.npy", numbers.reshape(27, 2, 1))
np.save("large.npy", numbers * 2000)
numbers[3, 1] = np.nan
np.save("nan.npy", numbers)
header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}, "b": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]},
                     "c": {"dtype": "I32", "shape": [1, 1], "data_offsets": [32, 36]}}).encode()
whole = struct.pack("<Q", len(header)) + header + bytes(36)
open("m.safetensors", "wb").write(whole)
open("cut.safetensors", "wb").write(whole[:-1])
open("liar.safetensors", "wb").write(struct.pack("<Q", 1 << 40) + header)
PY
attempt good.npy
attempt --vocab text8 short.npy
attempt --vocab text8 long.npy
attempt --vocab text8 fortran.npy
attempt --vocab text8 integers.npy
attempt --vocab text8 cube.npy
attempt --vocab text8 nan.npy
attempt --vocab text8 large.npy --dtype float16
head -c 200 good.npy > cut.npy
attempt --vocab text8 cut.npy
attempt --vocab text8 good.npy --raw-dim 5
attempt --vocab text8 m.safetensors
attempt --vocab text8 m.safetensors --tensor b
attempt --vocab text8 m.safetensors --tensor c
attempt --vocab text8 m.safetensors --tensor d
attempt --vocab text8 cut.safetensors
attempt --vocab text8 liar.safetensors
echo some text > text
attempt --vocab text8 text
attempt - < text
attempt /dev/null
: > empty
attempt empty
attempt absent.npy
attempt .
make-sample model > model.h5
attempt model.h5 --tensor blocks.0.norm1.weight
make-sample vocab > vocab.h5
attempt vocab.h5
make-sample embedding > e.h5
attempt e.h5 --vocab text8
attempt e.h5 --onto text8
attempt - --onto - < e.h5
attempt - --raw-dim 2 < e.h5
attempt --extra-rows some e.h5
make-sample tokens > t.h5
attempt t.h5
# Options that would do nothing with such a source.
attempt --vocab text8 good.npy --dim 64
attempt --vocab text8 good.npy --tensor a
attempt --vocab text8 good.npy --raw-type float16
attempt --vocab text8 good.npy --raw-dim 2 --tensor a
attempt --vocab text8 m.safetensors --tensor a --window 3
attempt e.h5 --smoothing 1
attempt - --tensor a < e.h5
attempt t.h5 --dim 8 --drop-rows
