# --version names the program, its version and what it is built on.
tool --version > out
head -n 1 out | grep -Eqx "${command%% *} [0-9]+\.[0-9]+\.[0-9]+"
grep -q '^Boost [0-9]' out
grep -q '^HDF5 [0-9]' out
