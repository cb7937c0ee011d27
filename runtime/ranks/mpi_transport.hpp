// Ranks as MPI processes. Messages are MPI's, collectives our own (runtime/ranks/collectives.hpp),
// so that the bytes counted are the bytes sent. Built without MPI, only `launched` works, and
// `run_mpi` says why it does not.
#pragma once

#include <functional>
#include <string>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

// "" where this build can run under MPI, else a sentence that says why not.
std::string mpi_missing();

struct MpiOptions {
  costmodel::Seconds patience{
      60};  // how long a rank waits for one message, and for the others' end
  // Whether another thread shall have a transport beside the rank's, where MPI lets several threads
  // call it at the same time (MPI_THREAD_MULTIPLE).
  bool beside = false;
  // Hears, where given, on a rank that fails why it does, before the run is aborted.
  std::function<void(const std::string&)> on_fault = {};
};

// Runs `program` as this process's rank between MPI_Init and MPI_Finalize, which a process calls
// once, and returns 0. When it throws, one sentence goes to standard error and the whole run is
// aborted with status 4, without returning. Built without MPI it prints mpi_missing() and
// returns 4. Only the calling thread may use the transport, and one other that beside it.
int run_mpi(const MpiOptions& options, const std::function<void(Transport&)>& program);

}  // namespace runtime
