// What a profiler recorded of one rank: kernels on the device, the operators of the host that
// launched them, and iterations. Of a trace by a pipeline's own clock (shardplan run --trace):
// actions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"

namespace planner {

using Nanoseconds = std::int64_t;

// Texts, each once.
class TextTable {
 public:
  std::uint32_t of(std::string_view text);
  const std::string& at(std::uint32_t number) const { return *texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<const std::string*> texts_;  // keys of the map, which stay where they are
};

inline constexpr std::uint32_t no_operator = 0xffffffff;
// Kernels, operators and calls together: some 250 MB of them.
inline constexpr std::size_t most_traced_events = 4'000'000;

struct TracedKernel {
  std::uint32_t name = 0, launcher = no_operator;  // the launcher: of `operators`
  std::int32_t stream = 0;
  Nanoseconds begin = 0, length = 0, launched = 0;  // launched: when the host did; 0: unknown
  double bytes = 0;                                 // of a copy
};

// An operator, an annotation of a program or a function of autograd on the host.
struct TracedOperator {
  std::uint32_t name = 0, sizes = 0, thread = 0;
  std::uint32_t outer = no_operator;  // the one that it runs within
  Nanoseconds begin = 0, length = 0;
  std::uint32_t type = no_operator;  // of its first input, a text; no_operator: not recorded
};

// What a collective moved, by the annotation of NCCL's process groups.
struct TracedCollective {
  std::uint32_t kernel = 0, name = 0;
  double elements = 0;  // sent by this rank
  std::uint32_t type = 0;
  int ranks = 0;
};

struct TracedSpan {
  Nanoseconds begin = 0, end = 0;
};

// Of a pipeline: "forward of micro-batch 0", on a rank's stream.
struct TracedAction {
  std::uint32_t name = 0, stream = 0;
  int rank = 0;
  Nanoseconds begin = 0, length = 0;
};

struct Trace {
  std::string file, profiler, device;  // device: as its driver calls it; empty: not recorded
  int rank = 0, ranks = 0;             // ranks: of the job; 0: not recorded
  int devices = 1;                     // whose kernels are recorded
  TextTable texts;
  std::vector<TracedKernel> kernels;  // ascending in time
  std::vector<TracedOperator> operators;
  std::vector<TracedCollective> collectives;
  std::vector<TracedSpan> iterations;
  bool marked = false;  // whether annotations or steps of the optimizer mark them
  std::vector<TracedAction> actions;
  costmodel::Seconds iteration;    // as the file itself states it; 0: not
  std::vector<Nanoseconds> calls;  // moments of calls on the host that are no `operators`
  bool has_sizes = false;          // whether operators have their sizes

  const std::string& text(std::uint32_t number) const { return texts.at(number); }
  // Of an operator's first input: "c10::BFloat16"; "" where it is not recorded.
  std::string_view type_of(const TracedOperator& each) const {
    return each.type == no_operator ? std::string_view() : text(each.type);
  }
};

// Where an operator runs: which one is within which, by their times in each thread.
void nest(Trace& trace);

// The operator that a call of CUDA's is within, which has no meaning of its own; `launcher` itself
// where it is no such call, or within none. `trace`: nested.
std::uint32_t operator_of(const Trace& trace, std::uint32_t launcher);

// The iterations by the spans named "ProfilerStep#N", "iteration N", "train_step N" or "step N";
// else by the ends of the optimizer's steps; else all of the trace is one.
void find_iterations(Trace& trace);

}  // namespace planner
