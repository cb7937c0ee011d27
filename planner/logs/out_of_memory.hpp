// The message with which an allocation fails, and what a traceback around it shows.
#pragma once

#include <optional>
#include <string_view>

#include "costmodel/base/units.hpp"

namespace planner {

// Where in an iteration it failed, as far as the traceback names a function.
enum class FailedIn { unknown, building, forward, loss, backward, step, checkpoint };

struct OutOfMemory {
  costmodel::Bytes wanted;    // the allocation that failed; 0: unknown
  costmodel::Bytes capacity;  // of the device, by the message; 0: unknown
  costmodel::Bytes free;
  costmodel::Bytes in_use;     // by this process, contexts included; 0: unknown
  costmodel::Bytes allocated;  // by PyTorch's tensors
  costmodel::Bytes cached;     // reserved by PyTorch and not allocated
  int rank = -1;               // -1: unknown
  FailedIn where = FailedIn::unknown;
  bool on_host = false;  // the host ran out, not the device
};

// Reads a log line by line: `known` is what has been read so far.
void read_out_of_memory(std::string_view line, FailedIn& last_seen,
                        std::optional<OutOfMemory>& known);

std::string_view failed_in_text(FailedIn where);

}  // namespace planner
