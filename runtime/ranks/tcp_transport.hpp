// Ranks as processes that torchrun started, without MPI: messages go over a TCP connection between
// each two ranks (runtime/ranks/tcp_rendezvous.hpp), collectives are our own
// (runtime/ranks/collectives.hpp), so that the bytes counted are the bytes sent. A thread of its
// own sends and receives, so that a rank that computes hears at once of another that is gone, and
// answers one that asks what it waits for.
#pragma once

#include <functional>
#include <string>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

struct TcpOptions {
  // How long a rank waits for the others to come, for one message, and for the others' end.
  costmodel::Seconds patience{60};
  // Hears, where given and on a thread of its own, why the run ends, although this rank may still
  // compute and only find it later.
  std::function<void(const std::string&)> on_cause = {};
  // Hears, where given, on a rank that fails why it does, before the others are told.
  std::function<void(const std::string&)> on_fault = {};
};

// Runs `program` as this process's rank, which the environment says (meeting() of the rendezvous).
// Throws RunFault when it throws, when another rank does, is gone, stops or does not come, on every
// rank with the cause that the first of them found. Any thread may use the transport.
void run_tcp(const TcpOptions& options, const std::function<void(Transport&)>& program);

}  // namespace runtime
