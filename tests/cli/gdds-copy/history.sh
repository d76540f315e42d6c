# The documented one-liner gives a script that makes the file again, byte for byte.
make-sample tokens --variant 3 > a.h5
gdds-copy --kind tokens a.h5 | gdds-copy > c.h5
mkdir again
h5dump -d /history -b LE -o /dev/stderr c.h5 2>&1 > /dev/null | jq -r .command > again/script
cd again || exit
bash -eu script
last=$(tail -n 1 script | sed 's/.*> //')
cmp "$last" ../c.h5
python3 -c "
import h5py, json, sys
for line in bytes(h5py.File(sys.argv[1])['history'][()]).splitlines(): print(json.loads(line)['command'])" ../c.h5 | cmp - script
