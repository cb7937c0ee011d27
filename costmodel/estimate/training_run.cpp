#include "costmodel/estimate/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/pricing.hpp"

namespace costmodel {

namespace {

// Where a cluster says nothing of its own.
struct Assumed {
  double value;
  const char* source;
};

constexpr double hour = 3600, day = 24 * hour;

// 16,384 devices for 54 days over 419 unexpected interruptions.
constexpr Assumed device_hours{16384 * 54 * 24.0 / 419,
                               "Llama 3's 419 unexpected interruptions in 54 days on 16,384 H100 "
                               "(arXiv:2407.21783, section 3.3.4)"};
constexpr Assumed storage_share{2e12 / 24576,
                                "Llama 3's 2 TB/s for 24,576 GPUs (arXiv:2407.21783, section "
                                "3.3.1)"};
constexpr Assumed restart_time{600,
                               "MegaScale's ten minutes to detect and diagnose (arXiv:2402.15627, "
                               "section 6)"};

// The device's share, from the group that it is of, else from the cluster.
double known(double own, double whole) { return own > 0 ? own : whole; }

double failures_per_second(const ClusterSpec& cluster, std::vector<std::string>& assumed) {
  double rate = 0;
  bool all = true;
  for (const ClusterSpec& group : groups_of(cluster)) {
    const double hours =
        known(group.operation.device_hours_per_failure, cluster.operation.device_hours_per_failure);
    all = all && hours > 0;
    rate += static_cast<double>(group.devices) / (known(hours, device_hours.value) * hour);
  }
  if (!all) {
    assumed.push_back(
        fmt::format("a failure every {} device hours (cluster.failures.device_hours), "
                    "as {}",
                    format_integer(std::llround(device_hours.value)), device_hours.source));
  }
  return rate;
}

}  // namespace

Seconds checkpoint_interval(Seconds write, Seconds between_failures) {
  const double d = write.value, m = between_failures.value;
  if (d >= 2 * m) return between_failures;
  const double root = std::sqrt(d / (2 * m));
  return Seconds(std::sqrt(2 * d * m) * (1 + root / 3 + root * root / 9) - d);
}

double kept_fraction(Seconds write, Seconds every, Seconds restart, Seconds between_failures) {
  const double m = between_failures.value;
  return every.value / (m * std::exp(restart.value / m) * std::expm1((every + write).value / m));
}

Goodput goodput(const Estimate& e, const ClusterSpec& cluster, const TrainingSpec& training) {
  Goodput g;
  g.between_failures = Seconds(1 / failures_per_second(cluster, g.assumed));
  g.checkpoint =
      Bytes((e.trained_parameters + e.mtp_parameters) *
            (weight_bytes_per_parameter(training) + optimizer_bytes_per_parameter(training)));
  const Operation& o = cluster.operation;
  if (o.storage.value == 0) {
    g.assumed.push_back(
        fmt::format("storage that takes {} of each device "
                    "(cluster.storage.bytes_per_s_per_device), as {}",
                    format_bandwidth(BytesPerSecond(storage_share.value)), storage_share.source));
  }
  if (o.restart.value == 0) {
    g.assumed.push_back(
        fmt::format("{} from a failure until the checkpoint is read again "
                    "(cluster.failures.restart_s), as {}",
                    format_seconds(Seconds(restart_time.value)), restart_time.source));
  }
  const BytesPerSecond rate(known(o.storage.value, storage_share.value) *
                            static_cast<double>(cluster.devices));
  g.write = g.checkpoint / rate;
  g.every = checkpoint_interval(g.write, g.between_failures);
  g.restart = Seconds(known(o.restart.value, restart_time.value)) + g.checkpoint / rate;
  g.fraction = kept_fraction(g.write, g.every, g.restart, g.between_failures);
  return g;
}

namespace {

// Over the groups, devices times what is known of one of them; nothing where one is unknown.
template <class Share>
std::optional<double> summed(const ClusterSpec& cluster, Share share) {
  double sum = 0;
  for (const ClusterSpec& group : groups_of(cluster)) {
    const double one = share(group);
    if (one <= 0) return std::nullopt;
    sum += one * static_cast<double>(group.devices);
  }
  return sum;
}

}  // namespace

std::optional<TrainingRun> training_run(const Estimate& e, const Goodput& g,
                                        const ClusterSpec& cluster, const TrainingSpec& training) {
  if (training.run_tokens <= 0) return std::nullopt;
  TrainingRun run;
  run.iterations = std::ceil(training.run_tokens / (static_cast<double>(training.global_batch) *
                                                    static_cast<double>(training.tokens())));
  const auto days_of = [&](Seconds iteration) { return run.iterations * iteration.value / day; };
  run.days = days_of(e.iteration);
  run.days_low = days_of(e.interval.low);
  run.days_high = days_of(e.interval.high);
  run.days_with_failures = run.days / g.fraction;
  const double hours = 24 * run.days_with_failures;
  run.device_hours = hours * static_cast<double>(cluster.devices);
  const Operation& all = cluster.operation;
  if (const auto usd = summed(cluster, [&](const ClusterSpec& group) {
        return known(group.operation.usd_per_device_hour, all.usd_per_device_hour);
      })) {
    run.usd = *usd * hours;
    run.price_date = all.price_date;
  }
  if (const auto watts = summed(cluster, [&](const ClusterSpec& group) {
        return known(known(group.operation.watts_per_device, all.watts_per_device),
                     group.device.watts);
      })) {
    run.megawatt_hours = *watts * hours / 1e6;
    run.of_devices_alone =
        all.watts_per_device == 0 && std::ranges::all_of(cluster.groups, [](const auto& group) {
          return group.operation.watts_per_device == 0;
        });
  }
  return run;
}

}  // namespace costmodel
