# What a checkpoint is, as rows and as JSON; from a file and from a pipe.
sample model m.h5
gdds-model info m.h5
gdds-model < m.h5 | cmp - <(gdds-model info m.h5)
gdds-model info --json m.h5 | python3 -c '
import json, sys
facts = json.load(sys.stdin)
assert facts["arch"] == "ddit" and facts["ema"] is True and facts["step"] == 1
print(facts["parameters"], facts["objective"], facts["process"])'
# The number of parameters is that of the tensors themselves.
python3 -c "
import h5py
f = h5py.File('m.h5')
print(sum(f['parameters'][name].size for name in f['parameters']))"
