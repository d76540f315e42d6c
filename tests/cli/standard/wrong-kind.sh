# only hdf5 input
# A good file of another kind is refused by name, or taken by a tool that takes any kind.
sample "$other_kind" in.h5
if [[ $command == "gdds-noise process" ]]; then tool --process uniform in.h5 > /dev/null && exit 3; fi # any kind has a vocabulary
if [[ $command == gdds-copy ]]; then tool() { gdds-copy --kind "$kind" "$@"; }; fi
tool in.h5 -o out.h5 2> err || status=$?
test ! -e out.h5
grep -Eqx "${command%% *}: in.h5: expected kind '$kind'( or '[a-z]+')*, found '$other_kind'" err
exit "$status"
