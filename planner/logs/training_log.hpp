// What the log of a training job says of its speed: the time of its iterations, the parts of one
// where the framework prints timers, memory, and the job's own sizes.
//
// The lines of seven frameworks are known (log_formats.hpp). A log may be a piece of one, with
// prefixes of a launcher, colours, and the same line from every rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"

namespace planner {

// The parts of an iteration that some framework times. forward_backward: the whole pipeline with
// its bubble and the end of the gradient reduction; forward, backward: what a rank computes for all
// its micro-batches; data: waiting for the next batch; gradient_sync: what of the reduction is not
// hidden; optimizer: its step, with the gather of parameters where that is not overlapped.
enum class JobPart { forward_backward, forward, backward, data, gradient_sync, optimizer };
inline constexpr std::array<std::string_view, 6> job_part_names{
    "forward_backward", "forward", "backward", "data", "gradient_sync", "optimizer"};

// A part in an iteration: the ranks that take least and most, the same where the log gives one
// number. Medians over the tables of the log.
struct LoggedPart {
  JobPart part = JobPart::forward_backward;
  costmodel::Seconds least, most;
};

struct LoggedIteration {
  std::int64_t number = 0;
  costmodel::Seconds time;  // where the log prints every n-th, the mean of those n
};

// The steady state, after the warm-up.
struct Pace {
  int warm_up = 0;  // lines left out: those of the first ten iterations, or the first one
  int counted = 0;
  costmodel::Seconds median, mean;
  double spread = 0;  // of an iteration: 1.4826 times the median deviation, relative to the median
  std::vector<LoggedIteration> slow;  // more than 10 % and five spreads above the median
  std::int64_t period = 0;            // iterations from one slow one to the next; 0: no rhythm
};

// A key of the scenario that the log gives a value, in the scenario's words: "plan.tp" "2".
struct Saying {
  std::string key, value;
};

struct TrainingLog {
  std::string framework;
  std::vector<LoggedIteration> iterations;  // all, ascending, the warm-up too
  Pace pace;
  std::vector<LoggedPart> parts;
  costmodel::Bytes allocated, reserved;  // highest of the ranks that print it; 0: not said
  double tokens_per_s_per_device = 0;    // as printed, median; 0: not said
  double sequences_per_s = 0;            // of all devices, likewise
  bool stamped =
      false;  // times are differences of the lines' time stamps: independent of the above
  std::vector<Saying> said;

  const LoggedPart* part(JobPart which) const;
  const std::string* says(std::string_view key) const;
};

// What an iteration is, for logs that print rates alone.
struct IterationSize {
  double sequences = 0, tokens_per_device = 0;
};

// Throws ConfigError for a file that cannot be read, and for one in which nothing is measured: the
// message lists what was looked for.
TrainingLog read_training_log(const std::string& file, const IterationSize& size);
TrainingLog parse_training_log(std::string_view text, const std::string& file,
                               const IterationSize& size);

// The steady state of such iterations.
Pace pace_of(const std::vector<LoggedIteration>& iterations);

}  // namespace planner
