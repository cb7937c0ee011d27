#include "costmodel/serving/served_load.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace costmodel {

namespace {

// Requests that are simulated where the scenario does not say: enough for a 95th percentile of a
// Poisson load (twenty beyond it), and some waves of a closed one.
constexpr std::int64_t open_requests = 400;
constexpr std::int64_t waves = 4;
constexpr std::int64_t fewest = 16, fewest_drawn = 256;  // of one length, and of drawn lengths

// An open load has settled when so many times the requests in flight have come and gone.
constexpr double settled = 8;

// Simulated steps cost microseconds; beyond this many tokens of a run a part stands for the whole.
constexpr double most_output = 4e6;

// Of a closed load so many times what may run at once are simulated: those beyond wait in line,
// each for all before it.
constexpr std::int64_t most_lines = 4;

// A run and the replicas that all do the same.
struct KindRun {
  ServedRun run;
  double replicas = 1;
};

struct Simulation {
  const ServingSpec& s;
  const ServingMemory& memory;
  const StepTimes& times;

  std::int64_t most() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(most_output / s.output.mean));
  }

  std::int64_t least() const {
    const auto drawn = [](const LengthSpec& l) { return l.p95 > 0 || l.most > 0; };
    return drawn(s.input) || drawn(s.output) ? fewest_drawn : fewest;
  }

  // `clients` 0: requests come when they arrive.
  ServedRun run(std::int64_t requests, std::int64_t clients, double rate, bool whole) const {
    const ReplicaLimits limits{
        s.limits, memory.blocks, s.decode_only ? 1 : s.prefix_hit_share, s.engine.reserves_output,
        clients,  whole};
    return serve(drawn_requests(s.input, s.output, rate, requests), limits,
                 [&](const StepLoad& step) { return times.of(step); });
  }

  // As many clients as keep some waiting.
  double most_answered() const {
    const double held = memory.tokens / s.input.mean;
    const auto running = static_cast<std::int64_t>(
        std::min(static_cast<double>(s.limits.max_num_seqs), std::ceil(held)));
    const std::int64_t clients = running + 1;
    const std::int64_t requests = std::max(least(), clients * waves);
    return run(std::max(std::min(requests, most()), clients), clients, 0, false).requests_per_s;
  }

  ServedRun settled_run(double rate) const {
    std::int64_t requests = std::min(open_requests, most());
    for (;;) {
      ServedRun open = run(requests, 0, rate, false);
      const double enough = settled * rate * open.e2e.mean;
      if (static_cast<double>(requests) >= enough || requests == most()) return open;
      requests = std::min(
          most(), std::max(2 * requests, static_cast<std::int64_t>(std::min(enough, most_output))));
    }
  }

  // `clients` keep as many requests in flight in one replica.
  ServedRun closed_run(std::int64_t clients) const {
    const std::int64_t simulated = std::min(clients, most_lines * s.limits.max_num_seqs);
    const std::int64_t requests = std::max(least(), simulated * waves);
    ServedRun closed = run(std::max(std::min(requests, most()), simulated), simulated, 0, false);
    const double beyond = static_cast<double>(clients - simulated) / closed.requests_per_s;
    for (Latency* latency : {&closed.ttft, &closed.e2e}) {
      latency->mean += beyond;
      latency->p95 += beyond;
    }
    for (auto* times_of : {&closed.times.ttft, &closed.times.e2e})
      for (double& time : *times_of) time += beyond;
    return closed;
  }
};

struct WeighedTime {
  double time = 0, weight = 0;
};

Latency latency_over(const std::vector<KindRun>& kinds, bool whole,
                     std::vector<double> RequestTimes::*times) {
  std::vector<WeighedTime> all;
  double sum = 0, weights = 0;
  for (const KindRun& kind : kinds) {
    const double weight = kind.replicas / (whole ? 1 : kind.run.seconds);
    for (const double time : kind.run.times.*times) {
      all.push_back({time, weight});
      sum += weight * time;
      weights += weight;
    }
  }
  if (all.empty()) return {};
  std::sort(all.begin(), all.end(), [](auto a, auto b) { return a.time < b.time; });
  double passed = 0;
  for (const WeighedTime& t : all) {
    passed += t.weight;
    if (passed >= 0.95 * weights * (1 - 1e-12)) return {sum / weights, t.time};
  }
  return {sum / weights, all.back().time};
}

// A benchmark of so many requests lasts as long as its slowest replica.
ServedLoad put_together(const std::vector<KindRun>& kinds, bool whole) {
  ServedLoad load;
  double seconds = 0;
  for (const KindRun& kind : kinds) seconds = std::max(seconds, kind.run.seconds);
  for (const auto& [run, replicas] : kinds) {
    const double share = replicas * (whole ? run.seconds / seconds : 1);
    load.requests_per_s += share * run.requests_per_s;
    load.output_per_s += share * run.output_per_s;
    load.total_per_s += share * run.total_per_s;
    load.busy += replicas;
    load.running += replicas * run.mean_running;
    load.context += replicas * run.mean_context;
    load.simulated = std::max(load.simulated, run.requests);
    load.preempted += run.preempted;
  }
  load.running /= load.busy;
  load.context /= load.busy;
  if (kinds.size() == 1) {
    const ServedRun& run = kinds.front().run;
    load.ttft = run.ttft;
    load.tpot = run.tpot;
    load.e2e = run.e2e;
    return load;
  }
  load.ttft = latency_over(kinds, whole, &RequestTimes::ttft);
  load.tpot = latency_over(kinds, whole, &RequestTimes::tpot);
  load.e2e = latency_over(kinds, whole, &RequestTimes::e2e);
  return load;
}

// So many requests in all, by clients, as they arrive or all at once.
ServedLoad whole_load(const Simulation& simulation, int dp) {
  const ServingSpec& s = simulation.s;
  const std::int64_t clients = std::min(s.concurrency, s.requests);
  std::vector<KindRun> kinds;
  for (const auto& [replicas, share] : spread(clients > 0 ? clients : s.requests, dp)) {
    const double part = clients > 0 ? static_cast<double>(share) / static_cast<double>(clients) : 0;
    const std::int64_t requests =
        clients > 0 ? std::llround(static_cast<double>(s.requests) * part) : share;
    kinds.push_back({simulation.run(std::clamp<std::int64_t>(requests, 1, simulation.most()),
                                    clients > 0 ? share : 0, s.arrival_rate / dp, true),
                     static_cast<double>(replicas)});
  }
  return put_together(kinds, true);
}

ServedLoad closed_load(const Simulation& simulation, int dp) {
  std::vector<KindRun> kinds;
  for (const auto& [replicas, share] : spread(simulation.s.concurrency, dp))
    kinds.push_back({simulation.closed_run(share), static_cast<double>(replicas)});
  return put_together(kinds, false);
}

// Tokens follow the requests.
void limit_rate(const ServingSpec& s, double requests_per_s, ServedLoad& load) {
  load.requests_per_s = requests_per_s;
  load.output_per_s = requests_per_s * s.output.mean;
  load.total_per_s = requests_per_s * (s.output.mean + s.input.mean);
}

ServedLoad open_load(const Simulation& simulation, int dp) {
  const ServingSpec& s = simulation.s;
  const double rate = s.arrival_rate / dp, capacity = simulation.most_answered();
  const bool whole = s.requests > 0, saturated = rate > capacity;
  ServedLoad load;
  if (whole) {
    load = whole_load(simulation, dp);
    if (load.requests_per_s > s.arrival_rate) limit_rate(s, s.arrival_rate, load);
  } else {
    const ServedRun run =
        saturated ? simulation.run(std::min(open_requests, simulation.most()), 0, rate, true)
                  : simulation.settled_run(rate);
    load = put_together({{run, static_cast<double>(dp)}}, saturated);
    limit_rate(s, std::min(rate, capacity) * dp, load);
  }
  load.capacity = capacity * dp;
  load.saturated = saturated;
  return load;
}

}  // namespace

std::vector<ClientShare> spread(std::int64_t all, int replicas) {
  const std::int64_t each = all / replicas;
  const int more = static_cast<int>(all % replicas);
  std::vector<ClientShare> shares;
  if (more > 0) shares.push_back({more, each + 1});
  if (each > 0) shares.push_back({replicas - more, each});
  return shares;
}

MeanShare mean_share(std::int64_t all, int replicas) {
  const auto some = static_cast<double>(all), n = static_cast<double>(replicas);
  return {std::max(1.0, some / n), std::min(some, n)};
}

ServedLoad served_load(const ServingSpec& s, const ServingMemory& memory, int dp,
                       const StepTimes& times) {
  const Simulation simulation{s, memory, times};
  if (s.arrival_rate > 0) return open_load(simulation, dp);
  if (s.requests > 0) return whole_load(simulation, dp);
  return closed_load(simulation, dp);
}

}  // namespace costmodel
