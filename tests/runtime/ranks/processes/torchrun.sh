# To be sourced: ranks as torchrun starts them, by the environment alone. `start_rank RANK WORLD PROGRAM...` starts one in
# the background, with its output in $scratch/out.RANK and $scratch/err.RANK; pids[RANK] is its process, and $port its
# MASTER_PORT.
pids=()

free_port() {
  local port
  for port in $(shuf -i 20000-29000 -n 50); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
}

start_rank() {
  local rank=$1 world=$2
  shift 2
  env -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u SLURM_STEP_ID RANK="$rank" LOCAL_RANK="$rank" WORLD_SIZE="$world" \
    MASTER_ADDR="${address:-localhost}" MASTER_PORT="$port" "$@" >"$scratch/out.$rank" 2>"$scratch/err.$rank" </dev/null &
  pids[rank]=$!
}
