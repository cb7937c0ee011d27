#include "planner/logs/out_of_memory.hpp"

#include <algorithm>
#include <array>

#include "planner/logs/log_line.hpp"

namespace planner {

using costmodel::Bytes;

namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr std::array byte_units{ByteUnit{"GiB", 1024.0 * 1024 * 1024},
                                ByteUnit{"MiB", 1024.0 * 1024},
                                ByteUnit{"KiB", 1024},
                                ByteUnit{"bytes", 1},
                                ByteUnit{"GB", 1e9},
                                ByteUnit{"MB", 1e6}};

// The unit at the start of a text; 0 for none.
double unit_at(std::string_view text) {
  const auto from = text.find_first_not_of("0123456789., ");
  if (from == std::string_view::npos) return 0;
  for (const ByteUnit& unit : byte_units)
    if (text.substr(from).starts_with(unit.name)) return unit.bytes;
  return 0;
}

// "... of which 219.06 MiB is free": the bytes that follow a label.
Bytes bytes_after(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  const auto number = number_after(line, label);
  if (!number || *number < 0 || *number > 1e15) return {};
  return Bytes(*number * unit_at(line.substr(at + label.size())));
}

// "(GPU 0; 15.78 GiB total capacity; 14.22 GiB already allocated": those that precede one.
Bytes bytes_before(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  const auto from = line.substr(0, at).find_last_of("(;");
  if (at == std::string_view::npos || from == std::string_view::npos) return {};
  return bytes_after(line.substr(from, at + label.size() - from), line.substr(from, 1));
}

struct Place {
  std::string_view words;
  FailedIn where;
};
// Functions of a traceback, those that say most first.
constexpr std::array places{
    Place{"exp_avg", FailedIn::step},
    Place{"optimizer.step", FailedIn::step},
    Place{"optim/adam", FailedIn::step},
    Place{"optim/optimizer.py", FailedIn::step},
    Place{"distrib_optimizer.py", FailedIn::step},
    Place{"in step", FailedIn::step},
    Place{"save_checkpoint", FailedIn::checkpoint},
    Place{"state_dict", FailedIn::checkpoint},
    Place{"cross_entropy", FailedIn::loss},
    Place{"lm_head", FailedIn::loss},
    Place{"compute_loss", FailedIn::loss},
    Place{"logits", FailedIn::loss},
    Place{".backward(", FailedIn::backward},
    Place{"in backward", FailedIn::backward},
    Place{"backward_step", FailedIn::backward},
    Place{"autograd/graph.py", FailedIn::backward},
    Place{"in forward", FailedIn::forward},
    Place{"forward_step", FailedIn::forward},
    Place{"from_pretrained", FailedIn::building},
    Place{"setup_model", FailedIn::building},
    Place{"deepspeed.initialize", FailedIn::building},
    Place{"in __init__", FailedIn::building},
};

// "[rank3]:" or "[Rank 3]" at the begin of a line.
int rank_of(std::string_view line) {
  for (const std::string_view label : {"[rank", "[Rank "}) {
    const auto number = number_after(line.substr(0, 40), label);
    if (number && *number >= 0 && *number < 1e6) return static_cast<int>(*number);
  }
  return -1;
}

OutOfMemory message_of(std::string_view line) {
  OutOfMemory m;
  m.wanted = bytes_after(line, "Tried to allocate ");
  if (m.wanted.value <= 0) m.wanted = bytes_after(line, "trying to allocate ");
  m.capacity = bytes_after(line, "total capacity of ");
  if (m.capacity.value <= 0) m.capacity = bytes_before(line, " total capacity");
  m.free = bytes_after(line, "of which ");
  if (m.free.value <= 0) m.free = bytes_before(line, " free");
  m.in_use = bytes_after(line, "this process has ");
  m.allocated = bytes_after(line, "Of the allocated memory ");
  if (m.allocated.value <= 0) m.allocated = bytes_before(line, " already allocated");
  const auto process = line.find("is allocated by PyTorch");
  if (process != std::string_view::npos)
    m.cached = bytes_after(line.substr(process), "PyTorch, and ");
  if (m.cached.value <= 0) {
    const Bytes reserved = bytes_before(line, " reserved in total by PyTorch");
    if (reserved > m.allocated) m.cached = reserved - m.allocated;
  }
  m.rank = rank_of(line);
  return m;
}

}  // namespace

void read_out_of_memory(std::string_view line, FailedIn& last_seen,
                        std::optional<OutOfMemory>& known) {
  constexpr std::array device_words{
      "out of memory. Tried to allocate", "CUDA out of memory", "OutOfMemoryError",
      "HIP out of memory", "NPU out of memory", "CUDA error: out of memory", "hipErrorOutOfMemory",
      // XLA's, and libraries that allocate past the framework
      "RESOURCE_EXHAUSTED: Out of memory", "Failed to CUDA calloc", "Cuda failure 'out of memory'",
      "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED"};
  const bool device =
      std::ranges::any_of(device_words, [&](const char* words) { return holds(line, words); });
  const bool host =
      holds(line, "DefaultCPUAllocator: can't allocate memory") || holds(line, "Killed process");
  if (!device && !host) {
    if (holds(line, "Traceback (most recent call last)")) last_seen = FailedIn::unknown;
    if (!holds(line, "File \"") && !holds(line, "    ")) return;
    const auto* const at =
        std::ranges::find_if(places, [&](const Place& one) { return holds(line, one.words); });
    // The deepest function that is known says most, unless it only calls on.
    if (at != places.end() && (at->where != FailedIn::building || last_seen == FailedIn::unknown) &&
        !(at->where == FailedIn::forward && last_seen == FailedIn::backward))
      last_seen = at->where;
    return;
  }
  OutOfMemory m = message_of(line);
  m.on_host = host && !device;
  m.where = last_seen;
  // Many ranks fail at once; the first line with a size says most.
  if (!known || (known->wanted.value <= 0 && m.wanted.value > 0)) known = m;
}

std::string_view failed_in_text(FailedIn where) {
  switch (where) {
    case FailedIn::building: return "while the model was built";
    case FailedIn::forward: return "in forward";
    case FailedIn::loss: return "in the output layer and the loss";
    case FailedIn::backward: return "in backward";
    case FailedIn::step: return "in the optimizer's step";
    case FailedIn::checkpoint: return "while a checkpoint was written";
    case FailedIn::unknown: break;
  }
  return "";
}

}  // namespace planner
