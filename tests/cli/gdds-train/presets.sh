# Every preset that is installed is one that gdds-train takes; what is typed counts before it.
sample tokens tokens.h5 --sequences 8
for preset in "$bin"/../share/gdds/presets/gdds-train/*.conf; do
  name=$(basename "$preset" .conf)
  gdds-train -q -j 1 --config "$name" --size tiny --precision fp32 --batch-size 4 --steps 1 tokens.h5 -o "$name.h5"
  echo "$name: $(gdds-model info "$name.h5" | grep '^step')"
done
