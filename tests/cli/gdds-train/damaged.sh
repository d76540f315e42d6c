# Damaged input: one bit flipped at 20 places of the tokens, of a checkpoint to go on from and of a process; cut off in the
# middle. Reported in one line, or the network is the same; nothing is written. A stream that breaks off inside a batch: an
# error, with what was learned until then saved.
sample tokens tokens.h5 --sequences 16
options=(-q -j 1 --size tiny --model-dim 16 --model-blocks 1 --model-heads 2 --precision fp32 --batch-size 4 --warm-up 2 --no-history)
gdds-noise process -q --process uniform tokens.h5 -o process.h5
gdds-train "${options[@]}" --process process.h5 --steps 1 tokens.h5 -o model.h5
run() { rm -f out.h5; status=0; gdds-train "${options[@]}" --steps 2 --process "$2" --resume "$3" "$1" -o out.h5 2>err || status=$?; }
run tokens.h5 process.h5 model.h5
cp out.h5 good.h5
for file in tokens process model; do
  size=$(stat -c %s $file.h5) reported=0
  for ((i = 0; i < 20; i++)); do
    at=$(((i * 7919 + 13) % size)) bit=$((1 << i % 8))
    cp $file.h5 bad-$file.h5
    byte=$(od -An -tu1 -j $at -N 1 $file.h5)
    printf "\\x$(printf %02x $((byte ^ bit)))" | dd of=bad-$file.h5 bs=1 seek=$at conv=notrunc status=none
    case $file in
      tokens) run bad-tokens.h5 process.h5 model.h5 ;;
      process) run tokens.h5 bad-process.h5 model.h5 ;;
      model) run tokens.h5 process.h5 bad-model.h5 ;;
    esac
    case $status in
      0) cmp good.h5 out.h5 ;;
      3) reported=$((reported + 1)); test "$(wc -l <err)" = 1; test ! -e out.h5 ;;
      *) echo "$file: byte $at: exit status $status"; cat err ;;
    esac
  done
  test $reported -gt 8 || echo "$file: only $reported of 20 reported"
  head -c $((size / 2)) $file.h5 >cut-$file.h5
done
run cut-tokens.h5 process.h5 model.h5; echo "$status"; cat err >&2
run tokens.h5 cut-process.h5 model.h5; echo "$status"; cat err >&2
run tokens.h5 process.h5 cut-model.h5; echo "$status"; sed 's/[0-9]* bytes, found [0-9]*/N bytes, found N/' err >&2
gdds-noise -q --process process.h5 --batch-size 4 --batches 3 tokens.h5 >stream.h5
status=0
head -c $(($(stat -c %s stream.h5) - 100)) stream.h5 | gdds-train "${options[@]}" --process process.h5 --steps 9 - -o streamed.h5 2>err || status=$?
echo "$status $(gdds-model info streamed.h5 | grep '^step')"
cat err >&2
