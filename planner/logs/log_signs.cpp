#include "planner/logs/log_signs.hpp"

#include <algorithm>
#include <cctype>

namespace planner {

namespace {

constexpr auto rows = std::to_array<SignRow>({
    {SignKind::net_socket, "net/socket : using", "NCCL 2.x"},
    {SignKind::net_socket, "via net/socket/", "NCCL 2.x"},
    {SignKind::net_socket, "using network socket", "NCCL 2.x"},
    {SignKind::net_socket, "net/ib : no device found", "NCCL 2.x"},
    {SignKind::net_socket, "nccl_ib_disable set by environment to 1", "NCCL 2.x"},
    {SignKind::net_socket, "nccl_ib_disable=1", "launch scripts, torchrun's environment"},
    {SignKind::net_socket, "nccl_net set by environment to socket", "NCCL 2.x"},
    {SignKind::no_direct_rdma, "gpu direct rdma disabled", "NCCL 2.x"},
    {SignKind::no_direct_rdma, "nccl_net_gdr_level set by environment to loc", "NCCL 2.x"},
    {SignKind::no_direct_rdma, "nv_peer_mem|not loaded", "NCCL 2.x"},
    {SignKind::net_fabric, "using network ib", "NCCL 2.x"},
    {SignKind::net_fabric, "using network aws libfabric", "aws-ofi-nccl"},
    {SignKind::net_fabric, "via net/ib/", "NCCL 2.x"},
    {SignKind::net_fabric, "net/ib : using", "NCCL 2.x"},
    {SignKind::peer_off, "nccl_p2p_disable set by environment to 1", "NCCL 2.x"},
    {SignKind::peer_off, "nccl_p2p_disable=1", "launch scripts"},
    {SignKind::peer_off, "via shm/", "NCCL 2.x"},
    {SignKind::peer_off, "p2p is disabled", "NCCL 2.x"},
    {SignKind::peer_off, "doesn't support faster communication broadband via p2p", "accelerate"},
    {SignKind::peer_off, "setting `nccl_p2p_disable", "accelerate"},
    {SignKind::collective_timeout, "watchdog caught collective operation timeout", "PyTorch"},
    {SignKind::collective_timeout, "timed out waiting|collective", "PyTorch"},
    {SignKind::allocator_retries, "cuda memory allocation retries", "torchtitan"},
    {SignKind::allocator_retries, "allocator cache flushes since last step", "DeepSpeed"},
    {SignKind::throttled, "thermal slowdown", "nvidia-smi, DCGM, dmesg"},
    {SignKind::throttled, "hw slowdown", "nvidia-smi, DCGM"},
    {SignKind::throttled, "power brake", "nvidia-smi, DCGM"},
    {SignKind::throttled, "power cap|: active", "nvidia-smi"},
    {SignKind::throttled, "clocks_throttle_reasons", "nvidia-smi"},
    {SignKind::throttled, "clocks_event_reasons", "nvidia-smi"},
    {SignKind::device_fault, "xid (pci", "the driver, dmesg"},
    {SignKind::device_fault, "nvrm: xid", "the driver, dmesg"},
    {SignKind::device_fault, "ecc error", "CUDA"},
    {SignKind::device_fault, "fallen off the bus", "the driver"},
    {SignKind::loader_slow, "does not have many workers which may be a bottleneck", "Lightning"},
    {SignKind::loader_slow, "dataloader will create|suggested max number of worker", "PyTorch"},
    {SignKind::loader_slow, "waiting for data", "data loaders"},
    {SignKind::loader_slow, "data loading is slow", "data loaders"},
    {SignKind::checkpoint, "saving checkpoint", "Megatron-LM, nanotron, OLMo"},
    {SignKind::checkpoint, "saving model checkpoint to", "Hugging Face"},
    {SignKind::checkpoint, "saving the checkpoint", "torchtitan"},
    {SignKind::checkpoint, "successfully saved checkpoint", "Megatron-LM"},
    {SignKind::checkpoint, "[torch] saving", "DeepSpeed"},
    {SignKind::checkpoint, "saved checkpoint", "several"},
    {SignKind::recompiled, "torch._dynamo hit config.", "PyTorch"},
    {SignKind::recompiled, "cache_size_limit", "PyTorch"},
    {SignKind::recompiled, "recompile_limit", "PyTorch"},
    {SignKind::attention_fallback, "unfuseddotproductattention", "Transformer Engine"},
    {SignKind::attention_fallback, "flash attention|not available", "several"},
    {SignKind::attention_fallback, "flashattention|not installed", "several"},
    {SignKind::attention_fallback, "flash_attn is not installed", "several"},
    {SignKind::attention_fallback, "falling back to|attention", "several"},
    {SignKind::attention_fallback, "attn_implementation|eager", "Hugging Face"},
    {SignKind::attention_fallback, "math attention", "PyTorch"},
    {SignKind::offload, "deepspeedcpuadam", "DeepSpeed"},
    {SignKind::offload, "cpu offload: true", "DeepSpeed"},
    {SignKind::offload, "offload_optimizer|cpu", "DeepSpeed"},
    {SignKind::offload, "applied cpu offload", "torchtitan"},
    {SignKind::full_precision, "using torch.float32 for parameters", "Megatron-LM"},
    {SignKind::launch_blocking, "cuda_launch_blocking=1", "environments"},
    {SignKind::launch_blocking, "cuda_launch_blocking: 1", "environments"},
    {SignKind::unbalanced_experts, "expert|imbalance", "several"},
    {SignKind::host_memory, "dataloader worker|is killed", "PyTorch"},
    {SignKind::host_memory, "oom-kill", "the kernel"},
    {SignKind::straggler, "straggler", "Megatron-LM, NVRx"},
});

void add(SignKind kind, std::string_view line, std::size_t row, std::vector<LogSign>& signs) {
  const auto known = std::ranges::find(signs, kind, &LogSign::kind);
  if (known != signs.end()) {
    ++known->count;
    return;
  }
  constexpr std::size_t longest = 160;
  signs.push_back({kind, 1, row, std::string(line.substr(0, longest))});
}

// Rows of a count that is 0 or of a limit that is not active are there in healthy jobs too.
bool denies(std::string_view lowered) {
  constexpr std::array words{"not active", " 0 cuda memory", "retries: 0", "false"};
  return lowered.starts_with("0 ") || std::ranges::any_of(words, [&](const char* one) {
           return lowered.find(one) != std::string_view::npos;
         });
}

bool matches(std::string_view lowered, std::string_view words) {
  while (true) {
    const auto bar = words.find('|');
    if (lowered.find(words.substr(0, bar)) == std::string_view::npos) return false;
    if (bar == std::string_view::npos) return true;
    words.remove_prefix(bar + 1);
  }
}

// Of a list of adapters, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0".
bool has_one_adapter(std::string_view lowered) {
  return lowered.find("net/ib : using [0]") != std::string_view::npos &&
         lowered.find("[1]") == std::string_view::npos;
}

}  // namespace

std::span<const SignRow> sign_rows() { return rows; }

void read_sign(std::string_view line, std::size_t row, std::vector<LogSign>& signs) {
  constexpr std::size_t longest = 4000;  // a dump of weights or of a configuration
  if (line.size() < 8 || line.size() > longest) return;
  std::string lowered(line);
  std::ranges::transform(lowered, lowered.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const SignRow& one : rows) {
    if (!matches(lowered, one.words)) continue;
    if (denies(lowered)) return;
    add(one.kind, line, row, signs);
    if (has_one_adapter(lowered)) add(SignKind::one_adapter, line, row, signs);
    return;
  }
}

const LogSign* sign_of(const std::vector<LogSign>& signs, SignKind kind) {
  const auto at = std::ranges::find(signs, kind, &LogSign::kind);
  return at == signs.end() ? nullptr : &*at;
}

}  // namespace planner
