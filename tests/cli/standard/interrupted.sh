# SIGINT while it waits for its input: ends by the signal and leaves nothing behind.
sample "$kind" in.h5
mkfifo pipe
for signal in INT TERM HUP; do
  (head -c 1000 in.h5; sleep 5) > pipe &
  timeout --preserve-status --signal "$signal" 0.4 $command $options - -o out.h5 < pipe || status=$?
  kill %% ; wait %% 2> /dev/null || :
  echo "$signal $status"
  test ! -e out.h5
done
