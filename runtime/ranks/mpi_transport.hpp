// Ranks as MPI processes. Point-to-point messages are MPI's; collectives are those of
// runtime/ranks/collectives.hpp, so that the bytes counted are the bytes sent. Built without MPI,
// run_mpi reports mpi_missing().
#pragma once

#include <functional>
#include <string>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

// "" when this build supports MPI, else a sentence with the reason.
std::string mpi_missing();

struct MpiOptions {
  costmodel::Seconds patience{
      60};  // how long a rank waits for one message, and for the other ranks' end
  // Whether a second thread gets a transport of its own (Transport::beside), when MPI allows
  // concurrent calls (MPI_THREAD_MULTIPLE).
  bool beside = false;
  // Called, if given, on a failing rank with the cause, before the run is aborted.
  std::function<void(const std::string&)> on_fault = {};
};

// Runs `program` as this process's rank between MPI_Init and MPI_Finalize, which a process may call
// once, and returns 0. When `program` throws, prints one sentence to standard error and aborts the
// run with status 4, without returning. Built without MPI it prints mpi_missing() and returns 4.
// Only the calling thread may use the transport, and one other thread its beside().
int run_mpi(const MpiOptions& options, const std::function<void(Transport&)>& program);

}  // namespace runtime
