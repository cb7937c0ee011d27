# To be sourced: two hosts as two network namespaces, 200 Mbit/s between them. `make_hosts` skips with 77 where that
# cannot be; `on_hosts RANKS_EACH PROGRAM...` runs a program on so many ranks of each. Both use $mpirun and $scratch.
a=shardplan-a-$$ b=shardplan-b-$$

skip() { echo "skipped: $*"; exit 77; }

remove_hosts() {
  ip netns del "$a" 2>/dev/null
  ip netns del "$b" 2>/dev/null
}

make_hosts() {
  [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
  command -v ip >/dev/null && command -v tc >/dev/null || skip "no ip or tc here (Debian: iproute2)"
  ip netns add "$a" 2>/dev/null && ip netns add "$b" || skip "no network namespaces here"
  ip link add va netns "$a" type veth peer name vb netns "$b" 2>/dev/null || skip "no veth pairs here"
  local end space link number
  for end in "$a va 1" "$b vb 2"; do
    read -r space link number <<<"$end"
    ip -n "$space" addr add "10.77.0.$number/24" dev "$link"
    ip -n "$space" link set "$link" up
    ip -n "$space" link set lo up
    tc -n "$space" qdisc add dev "$link" root tbf rate 200mbit burst 64kb latency 200ms 2>/dev/null ||
      skip "no token bucket filter here"
  done
  cat >"$scratch/agent" <<END
#!/bin/sh
shift
exec ip netns exec $b sh -c "\$*"
END
  chmod +x "$scratch/agent"
}

on_hosts() {
  local each=$1
  shift
  TMPDIR=$scratch ip netns exec "$a" timeout -k 5 60 "$mpirun" -np $((2 * each)) --allow-run-as-root --bind-to none \
    --mca plm_rsh_agent "$scratch/agent" --host "10.77.0.1:$each,10.77.0.2:$each" --mca mpi_yield_when_idle 1 \
    --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$@" </dev/null
}
