sample "$kind" in.h5
tool in.h5 >&-
