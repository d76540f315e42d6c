# only hdf5 output
# Every output tells its own history, unless asked not to.
sample "$kind" in.h5
tool in.h5 > out.h5
h5dump -d /history -b LE -o /dev/stderr out.h5 2>&1 > /dev/null | jq -r .tool | tail -n 1
tool --no-history in.h5 > out.h5
h5ls out.h5 | grep -c history || :
