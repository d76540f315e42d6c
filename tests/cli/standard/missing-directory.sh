sample "$kind" in.h5
tool in.h5 -o no/such/out.h5
