# The output may replace the input.
sample "$kind" in.h5
tool in.h5 > expected.h5
tool in.h5 -o in.h5
cmp expected.h5 in.h5
