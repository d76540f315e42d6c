# The same bytes from a file, from a redirected file, from a pipe; to a file, to a redirected file, to a pipe; run again;
# with one thread or three.
tool() { $command $options $same "$@"; }
sample "$kind" in.h5
tool in.h5 > a.h5
tool in.h5 -o b.h5
tool - < in.h5 > c.h5
cat in.h5 | tool - | cat > d.h5
tool --threads 1 in.h5 > e.h5
tool --threads 3 -o f.h5 in.h5
tool <(cat in.h5) > g.h5
mkfifo pipe
cat pipe > h.h5 & tool in.h5 -o pipe; wait
for copy in b c d e f g h; do cmp a.h5 $copy.h5; done
