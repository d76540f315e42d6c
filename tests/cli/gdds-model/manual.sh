# The examples of the manual page run as they stand there.
sample model model.h5
gdds-model export model.h5 > small.safetensors
gdds-tokenize convert -q bytes > gpt2.h5
python3 - "$source_dir/man/gdds-model.1" <<'PY'
import json, struct, sys, numpy as np
data = open("small.safetensors", "rb").read()
n, = struct.unpack("<Q", data[:8])
def save(path, classes):
    header, body = {}, b""
    for k, t in json.loads(data[8:8 + n]).items():
        if k == "__metadata__": continue
        shape = [64 * n // 4 if n in (4, 8, 12, 16, 24) else classes if n == 11 else n for n in t["shape"]]
        v = np.zeros(shape, "f4")
        header[k] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + v.nbytes]}
        body += v.tobytes()
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
save("mdlm.safetensors", 257)
save("duo.safetensors", 256)
page = open(sys.argv[1]).read()
open("examples", "w").write(page.split(".EX\n")[1].split(".EE\n")[0].replace("\\-", "-"))
PY
if ! command -v jq > /dev/null; then sed -i '/jq/d' examples; fi
bash -eu examples > lines
head -n 2 lines
gdds-model info duo.h5 | grep ^process
