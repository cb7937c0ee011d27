// A whole training run: how much of its time failures leave, its days, its energy and its cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"

namespace costmodel {

// Failures come at random at a steady rate; each costs the work since the last checkpoint and a
// restart. Checkpoints are written while training waits.
struct Goodput {
  double fraction = 1;               // of the time that is spent on steps that are kept
  Seconds between_failures;          // mean, of the full cluster
  Bytes checkpoint;                  // weights and optimizer states
  Seconds write;                     // of a checkpoint by all devices
  Seconds every;                     // of training between two checkpoints
  Seconds restart;                   // from a failure until training goes on, reading included
  std::vector<std::string> assumed;  // sentences: what the cluster does not say
};

// Above this many devices every report tells it.
inline constexpr std::int64_t few_failures = 512;

// J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
// Generation Computer Systems 22 (2006): `every` is its equation 37, and the fraction the inverse
// of its equation 20, for runs much longer than a checkpoint's writing. J. W. Young (1974) has the
// first term of `every`. The devices of all groups fail independently.
Goodput goodput(const Estimate& estimate, const ClusterSpec& cluster, const TrainingSpec& training);

// The same from its inputs: how often to write a checkpoint, and what is left.
Seconds checkpoint_interval(Seconds write, Seconds between_failures);
double kept_fraction(Seconds write, Seconds every, Seconds restart, Seconds between_failures);

// Of training.run_tokens on all devices of the cluster. Days have 24 hours.
struct TrainingRun {
  double iterations = 0;
  double days = 0;                       // of training alone
  double days_low = 0, days_high = 0;    // by the iteration's 90 % interval
  double days_with_failures = 0;         // days over the goodput
  double device_hours = 0;               // with failures
  std::optional<double> usd;             // of the device hours; where all prices are known
  std::string price_date;                // of the price; of several, empty
  std::optional<double> megawatt_hours;  // at full load all along; where all powers are known
  bool of_devices_alone = false;         // the powers are limits of devices, without their hosts
};

// Nothing where the scenario does not say how many tokens.
std::optional<TrainingRun> training_run(const Estimate& estimate, const Goodput& goodput,
                                        const ClusterSpec& cluster, const TrainingSpec& training);

}  // namespace costmodel
