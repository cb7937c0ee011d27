# To be sourced: `gone PID...` waits until processes are, a minute at most where a machine is busy; it names
# those that are still there, ends them and fails.

# One look: a process that goes between two of them would be there in the first and no zombie in the second.
lives() {
  local state
  state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
  [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

gone() {
  local pid left=0 until=$((SECONDS + 60))
  for pid in "$@"; do
    while lives "$pid" && [ $SECONDS -lt $until ]; do sleep 0.05; done
    lives "$pid" || continue
    echo "FAULT: process $pid is still there"
    kill -9 "$pid" 2>/dev/null
    left=1
  done
  return $left
}
