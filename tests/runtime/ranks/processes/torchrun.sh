# To be sourced: ranks as torchrun starts them, by the environment alone. `start_rank RANK WORLD PROGRAM...` starts one in
# the background, with its output in $scratch/out.RANK and $scratch/err.RANK; pids[RANK] is its process, and $port its
# MASTER_PORT.
pids=()

# One of two in a row that nobody listens at. Tests that run at the same time are other processes, and begin elsewhere.
free_port() {
  local n port
  for n in $(seq 50); do
    port=$((20000 + (2 * $$ + 100 * (n - 1)) % 9000))
    taken $port || taken $((port + 1)) || { echo "$port"; return; }
  done
}

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start_rank() {
  local rank=$1 world=$2
  shift 2
  env -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u SLURM_STEP_ID -u LOCAL_WORLD_SIZE RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE="$world" \
    MASTER_ADDR="${address:-localhost}" MASTER_PORT="$port" "$@" >"$scratch/out.$rank" 2>"$scratch/err.$rank" </dev/null &
  pids[rank]=$!
}
