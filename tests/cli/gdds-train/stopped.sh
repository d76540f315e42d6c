# A signal ends the run after its step, with the checkpoint saved; killed outright, the last checkpoint is whole.
sample tokens tokens.h5 --sequences 16
options=(-q -j 1 --size tiny --model-dim 32 --model-heads 2 --precision fp32 --batch-size 4 --warm-up 2 --save-every 1)
wait_for_file() { for _ in {1..600}; do [[ -e $1 ]] && return; sleep 0.05; done; echo "no $1"; }
# Not INT, which bash has its background jobs ignore.
for signal in TERM HUP; do
  gdds-train "${options[@]}" tokens.h5 -o "$signal.h5" &
  wait_for_file "$signal.h5"
  kill -s "$signal" $!
  status=0
  wait $! || status=$?
  echo "$signal $status $(gdds-model info "$signal.h5" | grep -c '^step')"
done
for i in {1..20}; do
  gdds-train "${options[@]}" tokens.h5 -o killed.h5 &
  wait_for_file killed.h5
  sleep "$((i % 2)).$((i * 37 % 90 + 10))"
  kill -9 $!
  status=0
  wait $! 2>/dev/null || status=$?
  [[ $status == 137 ]] || echo "ended with $status before it was killed"
  gdds-copy -q killed.h5 >copy.h5 || echo "damaged after $i"
  rm -f .killed.h5.* # what a process killed outright cannot remove
done
