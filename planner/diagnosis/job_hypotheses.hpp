// What may be wrong with a job that is slow: each hypothesis is the job changed in one respect
// (job_faults.hpp), which the cost model prices again, with what it does to the series of
// iterations and which lines it prints. No hypothesis holds a time of its own.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "planner/diagnosis/job_faults.hpp"
#include "planner/logs/log_series.hpp"
#include "planner/logs/log_signs.hpp"

namespace planner {

// How likely each SeriesShape is of a job with a fault; they add up to 1.
using ShapeOdds = std::array<double, series_shape_names.size()>;

// How many times as likely a job with the fault has a line of the kind as one without; 0: of no
// such line.
struct SignOdds {
  SignKind kind = SignKind::net_socket;
  double times = 0;
};

struct Hypothesis {
  std::string_view name;
  double weight;             // its prior is this over the sum of those that apply
  std::string_view because;  // the reason for the weight
  std::string_view key;     // of the setting at fault: a log that has it as configured rules it out
  std::string_view remedy;  // a sentence: what to look at, what to change
  std::string_view test;    // what settles it: a command, a variable, a line to look for
  std::vector<Variant> (*variants)(const Suspect& suspect);  // equally likely; empty: cannot be
  const ShapeOdds* shapes;
  std::array<SignOdds, 4> signs{};
  bool near_full = false;  // can be only where memory is
};

// Of variants that pause now and then, whatever the fault.
extern const ShapeOdds shapes_of_pauses;

// The first one is that nothing is wrong. All faults known here follow; that it is none of these is
// the diagnosis's own (job_diagnosis.hpp).
//
// The weights and odds are judgement, stated with their reasons, and meant to be corrected: counts
// of causes over many slow jobs would replace them. They matter where the log cannot tell two
// causes apart.
std::span<const Hypothesis> hypotheses();

}  // namespace planner
