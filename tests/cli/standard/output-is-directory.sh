sample "$kind" in.h5
mkdir out.h5
tool in.h5 -o out.h5
