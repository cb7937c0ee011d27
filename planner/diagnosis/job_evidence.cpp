#include "planner/diagnosis/job_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace planner {

using namespace costmodel;

namespace {

// How wide what is measured lies around what a hypothesis predicts.
struct Widths {
  double faster, slower;  // standard deviations of log(measured / predicted) of the iteration
  double part, least_part, ranks, allocated, reserved;
};

// z of the 95th percentile.
constexpr double z95 = 1.6449;

Widths of_prediction(const ErrorBand& band) {
  return {.faster = -std::log(band.low) / z95,
          .slower = std::log(band.high) / z95,
          .part = band.pair_spread,
          .least_part = 0.01,
          .ranks = 0.05,
          .allocated = 0.08,
          .reserved = 0.2};
}

// Of what is in no hypothesis: a job three times as slow is no surprise, and all else may be
// anything.
Widths of_none(const ErrorBand& band) {
  return {.faster = -std::log(band.low) / z95,
          .slower = std::max(1.1, std::log(band.high) / z95),
          .part = 0.5,
          .least_part = 0.1,
          .ranks = 0.2,
          .allocated = 0.3,
          .reserved = 0.3};
}

double log_student(double x, double scale) {
  constexpr double degrees = 3;
  const double normal = 2 / (std::numbers::pi * std::sqrt(degrees));  // of 3 degrees of freedom
  const double z = x / scale;
  return std::log(normal / scale) - (degrees + 1) / 2 * std::log1p(z * z / degrees);
}

// Much that no hypothesis names makes a job slower than predicted, and little faster: far beyond
// what is usual the upper tail falls as a straight line.
double log_two_sided(double x, double below, double above) {
  constexpr double usual = 6;
  const double z = x / (x < 0 ? below : above);
  const double tail = z > usual ? usual * (z - usual / 2) : z * z / 2;
  return std::log(std::sqrt(2 / std::numbers::pi) / (below + above)) - tail;
}

// A part that both the log and the prediction have.
double log_part(const LoggedPart& logged, const PredictedPart& expected, double off,
                Seconds iteration, const Widths& w) {
  const double most = off * expected.most.value;
  double sum = log_student(logged.most.value - most,
                           std::max(w.part * most, w.least_part * iteration.value));
  const bool compared = logged.part == JobPart::forward || logged.part == JobPart::backward;
  if (compared && logged.least.value > 0 && logged.least < logged.most &&
      expected.least.value > 0) {
    sum += log_student(
        std::log(logged.most / logged.least) - std::log(expected.most / expected.least), w.ranks);
  }
  return sum;
}

// The level of a series that a prediction is held against: the first iterations' where later ones
// grow, the last ones' where they became slower at once.
Seconds level(const Pace& pace, const PredictedJob& expected) {
  // What has grown before the log begins is unknown, so that a slower begin is no surprise.
  if (expected.grows && pace.shape == SeriesShape::growing)
    return costmodel::min(pace.early, expected.iteration);
  return pace.shape == SeriesShape::stepped ? pace.late : pace.median;
}

double log_likelihood(const TrainingLog& log, const PredictedJob& expected, Bytes capacity,
                      const Widths& w) {
  const Seconds measured = level(log.pace, expected);
  const double off = measured / expected.iteration;
  double sum = log_two_sided(std::log(off), w.faster, w.slower);
  if (expected.has_parts) {
    for (const LoggedPart& part : log.parts)
      sum += log_part(part, expected.parts[static_cast<std::size_t>(part.part)], off, measured, w);
  }
  const bool allocated = log.allocated.value > 0;
  const auto bytes = allocated ? log.allocated : log.reserved;
  const auto predicted = allocated ? expected.allocated : expected.reserved;
  if (bytes.value > 0 && predicted.value > 0) {
    sum += log_student(std::log(bytes / costmodel::min(predicted, capacity)),
                       allocated ? w.allocated : w.reserved);
  }
  return sum;
}

Seconds computed(const PredictedJob& job) {
  return job.parts[static_cast<std::size_t>(JobPart::forward)].most +
         job.parts[static_cast<std::size_t>(JobPart::backward)].most;
}

// A prediction with the computation that was measured, where that is less than any fault leaves.
PredictedJob quickened(PredictedJob job, const TrainingLog& log, const Known& known) {
  const LoggedPart *forward = log.part(JobPart::forward), *backward = log.part(JobPart::backward);
  if (forward == nullptr || backward == nullptr || !job.has_parts) return job;
  const Seconds configured = computed(known.configured);
  const Seconds measured = forward->most + backward->most;
  constexpr double same = 0.98;
  if (configured.value <= 0 || measured > configured * known.band.low ||
      computed(job) < configured * same) {
    return job;
  }
  const double share = measured / configured;
  const Seconds left = job.iteration - computed(job) * (1 - share);
  if (left.value <= 0) return job;
  job.iteration = left;
  for (const JobPart part : {JobPart::forward, JobPart::backward}) {
    PredictedPart& one = job.parts[static_cast<std::size_t>(part)];
    one = {one.least * share, one.most * share};
  }
  return job;
}

// A device that is nearly full, by the log where it has the allocator's figure.
double fullness_odds(const TrainingLog& log, const Known& known) {
  if (sign_of(log.signs, SignKind::allocator_retries) != nullptr) return 1;
  const bool logged = log.reserved.value > 0;
  const Bytes held = logged ? log.reserved : known.predicted_peak;
  const double fullness = known.capacity.value > 0 ? held / known.capacity : 0;
  constexpr double nearly = 0.93, roomy = 0.85;
  return fullness < roomy ? 0.05 : logged && fullness > nearly ? 4 : 1;
}

}  // namespace

double log_time_and_memory(const TrainingLog& log, const PredictedJob& expected,
                           const Known& known) {
  return log_likelihood(log, quickened(expected, log, known), known.capacity,
                        of_prediction(known.band));
}

double log_of_none(const TrainingLog& log, const PredictedJob& expected, const Known& known) {
  constexpr double any_shape = 1.0 / series_shape_names.size();
  return log_likelihood(log, quickened(expected, log, known), known.capacity, of_none(known.band)) +
         std::log(any_shape);
}

double log_series_and_lines(const TrainingLog& log, const Hypothesis& h,
                            const PredictedJob& expected, const Known& known) {
  const bool pauses = expected.slow_iterations >= faults::often_slow;
  const bool own = h.name == "checkpoint-writing";  // its pauses have a rhythm of their own
  const ShapeOdds& shapes = pauses && !own ? shapes_of_pauses : *h.shapes;
  double sum = std::log(shapes[static_cast<std::size_t>(log.pace.shape)]);
  for (const SignOdds& odds : h.signs)
    if (odds.times > 0 && sign_of(log.signs, odds.kind) != nullptr) sum += std::log(odds.times);
  // A fabric that NCCL names, of all its adapters, speaks against TCP and not against a slow link.
  const bool fabric = sign_of(log.signs, SignKind::net_fabric) != nullptr &&
                      sign_of(log.signs, SignKind::net_socket) == nullptr &&
                      sign_of(log.signs, SignKind::one_adapter) == nullptr;
  constexpr double despite_fabric = 0.5;
  if (fabric && h.name == "slow-network") sum += std::log(despite_fabric);
  // Frameworks print that they write a checkpoint.
  constexpr double unprinted = 0.4;
  if (own && sign_of(log.signs, SignKind::checkpoint) == nullptr) sum += std::log(unprinted);
  if (h.near_full) sum += std::log(fullness_odds(log, known));
  return sum;
}

}  // namespace planner
