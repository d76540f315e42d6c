# A reader that went away ends the tool quietly, by SIGPIPE or, where that is ignored, by the same status.
sample "$kind" in.h5
mkfifo pipe
exec 3<> pipe 4> pipe 3<&-
tool in.h5 >&4 || echo "$?"
trap '' PIPE
tool in.h5 >&4 || echo "$?"
