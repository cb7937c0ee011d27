// Lines of a log that measure nothing and yet name what is wrong: transport of NCCL, retries of the
// allocator, throttling, faults of a device, checkpoints, fall-backs. A record a wording, with the
// program that prints it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

enum class SignKind {
  net_socket,          // NCCL's network is TCP
  net_fabric,          // ... InfiniBand, RoCE or a vendor's plugin
  one_adapter,         // ... one adapter alone
  no_direct_rdma,      // ... not from device memory
  peer_off,            // devices of a node do not reach one another's memory
  collective_timeout,  // a watchdog waited in vain
  allocator_retries,
  throttled,
  device_fault,  // Xid, ECC
  loader_slow,
  checkpoint,
  recompiled,
  attention_fallback,
  offload,
  full_precision,
  launch_blocking,
  unbalanced_experts,
  host_memory,  // swapping, /dev/shm, a killed worker
  straggler,    // the framework's own detector names a rank
};
inline constexpr std::size_t sign_kind_count = 19;

struct SignRow {
  SignKind kind;
  std::string_view words;  // in small letters; a bar separates words that all are in the line
  std::string_view printed_by;
};
std::span<const SignRow> sign_rows();

struct LogSign {
  SignKind kind = SignKind::net_socket;
  int count = 0;
  std::size_t row = 0;  // of the first line, from 1
  std::string line;     // that line, shortened
};

// Adds what the line is a sign of, if of anything.
void read_sign(std::string_view line, std::size_t row, std::vector<LogSign>& signs);

const LogSign* sign_of(const std::vector<LogSign>& signs, SignKind kind);

}  // namespace planner
