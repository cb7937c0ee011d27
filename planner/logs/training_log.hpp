// What the log of a training job says of its speed: the time of its iterations, the parts of one
// where the framework prints timers, memory, and the job's own sizes.
//
// The lines that frameworks time are in log_formats.hpp and trainer_lines.hpp, those that name a
// fault in log_signs.hpp. A log may be a piece of one, with prefixes of a launcher, colours, and
// the same line from every rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/base/units.hpp"
#include "planner/logs/log_series.hpp"
#include "planner/logs/log_signs.hpp"
#include "planner/logs/out_of_memory.hpp"

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

// A key of the scenario that the log gives a value, in the scenario's words: "plan.tp" "2".
struct LoggedSetting {
  std::string key, value;
};

// Memory of one rank, the most that it printed.
struct RankMemory {
  int rank = 0;
  costmodel::Bytes allocated, reserved;
};

struct TrainingLog {
  std::string framework;
  std::vector<LoggedIteration> iterations;  // all, ascending, the warm-up too
  Pace pace;
  std::vector<LoggedPart> parts;
  costmodel::Bytes allocated, reserved;  // highest of the ranks that print it; 0: unknown
  std::vector<RankMemory> ranks;         // where lines name their rank, ascending
  double tokens_per_s_per_device = 0;    // as printed, median; 0: unknown
  double sequences_per_s = 0;            // of all devices, likewise
  double flops_per_s_per_device = 0;     // likewise, where it varies with the time
  // Of an iteration, by the rate of a line and the time to it from the stamp before; 0: unknown.
  double sequences_each = 0, tokens_each_per_device = 0;
  double parameters = 0;       // of the model, as the framework counts them; 0: unknown
  double rank_parameters = 0;  // likewise, on one rank of tensors and stages
  int restarts = 0;            // how often the count of iterations went back
  std::int64_t averaged =
      0;  // iterations of which the only time of the log is the mean, a summary's
  std::vector<LogSign> signs;
  std::optional<OutOfMemory> out_of_memory;
  bool stamped =
      false;  // times are differences of the lines' time stamps: independent of the above
  std::vector<LoggedSetting> settings;

  const LoggedPart* part(JobPart which) const;
  const std::string* stated(std::string_view key) const;
};

// What an iteration is, for logs that print rates alone.
struct IterationSize {
  double sequences = 0, tokens_per_device = 0;
};

// Throws ConfigError for a file that cannot be read, and for one in which nothing is measured and
// nothing ran out of memory: the message lists what was looked for.
TrainingLog read_training_log(const std::string& file, const IterationSize& size);
TrainingLog parse_training_log(std::string_view text, const std::string& file,
                               const IterationSize& size);

}  // namespace planner
