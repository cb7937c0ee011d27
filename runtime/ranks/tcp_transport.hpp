// Ranks as processes that torchrun started, without MPI. Messages go over one TCP connection per
// pair of ranks (runtime/ranks/tcp_rendezvous.hpp); collectives are those of
// runtime/ranks/collectives.hpp, so that the bytes counted are the bytes sent. A background thread
// sends and receives, so that a computing rank notices at once when another is gone, and answers a
// rank that asks what it waits for.
#pragma once

#include <functional>
#include <string>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

struct TcpOptions {
  // Timeout of the rendezvous, of one message, and of the other ranks' end.
  costmodel::Seconds patience{60};
  // Called, if given, on another thread with the cause that ends the run, possibly while this rank
  // still computes and has not noticed it.
  std::function<void(const std::string&)> on_cause = {};
  // Called, if given, on a failing rank with the cause, before the other ranks are informed.
  std::function<void(const std::string&)> on_fault = {};
};

// Runs `program` as this process's rank, read from the environment (meeting()). Throws RunFault
// when it throws, or when another rank throws, exits, hangs or never arrives; on every rank with
// the first cause found. The transport is thread-safe.
void run_tcp(const TcpOptions& options, const std::function<void(Transport&)>& program);

}  // namespace runtime
