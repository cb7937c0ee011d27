#include "costmodel/serving/served_load.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "costmodel/serving/steady_state.hpp"

namespace costmodel {

namespace {

// Requests that are simulated where the scenario does not say: enough for a 95th percentile of a
// Poisson load (twenty beyond it), and some waves of a closed one.
constexpr std::int64_t open_requests = 400;
constexpr std::int64_t waves = 4;
// Of drawn lengths, until a client has made so many tokens, and so many at most: by then the ends
// have left the order of the start; and where prompts stop all decoding, by chance more or fewer of
// their steps lie between two decodes, whose mean is then within one per cent.
constexpr std::pair<double, std::int64_t> drawn_waves{64, 16}, stopped_waves{1024, 512};
constexpr std::int64_t fewest = 16, fewest_drawn = 256;  // of one length, and of drawn lengths

// An open load has settled when so many times the requests in flight have come and gone.
constexpr double settled = 8;

// Simulated steps cost microseconds; beyond this many tokens, or requests, of a run a part stands
// for the whole.
constexpr double most_output = 4e6, most_requests = 4e4;

// So many times what may run at once, of a closed load at most: those beyond wait in line.
constexpr std::int64_t most_lines = 4, least_lines = 2;

// A run and the replicas that all do the same.
struct KindRun {
  ServedRun run;
  double replicas = 1;
};

// By so much later for a client.
void delay(double seconds, ServedRun& run) {
  for (Latency* latency : {&run.ttft, &run.e2e})
    *latency = {latency->mean + seconds, latency->p95 + seconds};
  for (auto* times_of : {&run.times.ttft, &run.times.e2e})
    for (double& time : *times_of) time += seconds;
}

void set_rate(double requests_per_s, ServedRun& run) {
  const double factor = requests_per_s / run.requests_per_s;
  for (double* rate : {&run.requests_per_s, &run.output_per_s, &run.total_per_s}) *rate *= factor;
}

// Of other replicas, but for their latencies.
void add(const ServedFigures& o, double rates, double replicas, ServedFigures& sum) {
  sum.requests_per_s += rates * o.requests_per_s;
  sum.output_per_s += rates * o.output_per_s;
  sum.total_per_s += rates * o.total_per_s;
  sum.running += replicas * o.running;
  sum.context += replicas * o.context;
  sum.preempted += o.preempted;
}

// Between two runs, with so much of the second.
ServedRun between(ServedRun a, const ServedRun& b, double of_b) {
  for (auto [latency, times] : {std::pair{&ServedRun::ttft, &RequestTimes::ttft},
                                {&ServedRun::tpot, &RequestTimes::tpot},
                                {&ServedRun::e2e, &RequestTimes::e2e}}) {
    Latency& own = a.*latency;
    const double factor = own.mean > 0 ? 1 + of_b * ((b.*latency).mean / own.mean - 1) : 1;
    own = {own.mean * factor, own.p95 * factor};
    for (double& time : a.times.*times) time *= factor;
  }
  a.running += of_b * (b.running - a.running);
  a.context += of_b * (b.context - a.context);
  return a;
}

// `more` like those of the middle half. Where all start at once they come in its middle and those
// after them are later by `wait`.
Latency prolonged(std::vector<double> times, double more, double wait) {
  if (times.empty()) return {};
  if (wait > 0) std::sort(times.begin(), times.end());
  const auto quarter = static_cast<std::ptrdiff_t>(times.size() / 4);
  const double middle = latency_of({times.begin() + quarter, times.end() - quarter}).mean;
  const auto some = static_cast<double>(times.size());
  Latency latency = latency_of(times);
  latency.mean = (some * latency.mean + more * middle) / (some + more) + wait / 2;
  if (wait <= 0) return latency;
  const double beyond = 0.95 * (some + more) - some / 2;  // the first half
  const auto after = static_cast<std::size_t>(std::max(0.0, some / 2 + beyond - more));
  latency.p95 = beyond < more ? times[times.size() / 2] + wait * beyond / more
                              : times[std::min(after, times.size() - 1)] + wait;
  return latency;
}

struct Simulation {
  const ServingSpec& s;
  const ServingMemory& memory;
  const StepTimes& times;
  const WayIn& way;

  double outside() const { return s.engine.constants.request.value; }

  // What a replica runs at the same time, where requests wait.
  std::int64_t running() const {
    const double held = std::ceil(memory.tokens / s.input.mean);
    return std::min(s.limits.max_num_seqs, static_cast<std::int64_t>(std::min(held, 1e9)));
  }

  std::int64_t most() const {
    return std::max(least_lines * running(), static_cast<std::int64_t>(std::min(
                                                 most_output / s.output.mean, most_requests)));
  }

  bool drawn() const {
    return s.input.p95 > 0 || s.input.most > 0 || s.output.p95 > 0 || s.output.most > 0;
  }
  std::int64_t least() const { return drawn() ? fewest_drawn : fewest; }

  // Answers of a client, of a closed load.
  std::int64_t rounds() const {
    if (!drawn()) return waves;
    const bool stops = !s.limits.chunked_prefill && !s.decode_only;
    const auto& [output, most] = stops ? stopped_waves : drawn_waves;
    return std::clamp(static_cast<std::int64_t>(output / s.output.mean), waves, most);
  }

  // `part` of all requests come to this replica, `rate` a second. Prompts that have devices of
  // their own wait there for those of all replicas.
  std::vector<ServedRequest> arriving(std::int64_t requests, double rate, double part) const {
    auto own = drawn_requests(s.input, s.output, rate, requests);
    if (rate <= 0 || way.most_per_s <= 0) return own;
    Draws draws;
    double now = 0, left = -1 / way.most_per_s;
    for (ServedRequest& r : own) {
      for (bool its = false; !its;) {  // the next of all, and whether it is of this replica
        now -= std::log(draws.uniform()) * part / rate;
        left = std::max(now + way.delay.value, left + 1 / way.most_per_s);
        its = draws.uniform() < part;
      }
      r.arrival = now;
      r.ready = left;
    }
    return own;
  }

  // `clients` 0: requests come when they arrive.
  ServedRun run(std::int64_t requests, std::int64_t clients, double rate, bool full,
                double part) const {
    return run(arriving(requests, rate, part), clients, full, part);
  }
  ServedRun run(const std::vector<ServedRequest>& requests, std::int64_t clients, bool full,
                double part) const {
    const ReplicaLimits limits{.serving = s.limits,
                               .blocks = memory.blocks,
                               .prefix_hit_share = s.decode_only ? 1 : s.prefix_hit_share,
                               .reserves_output = s.engine.reserves_output,
                               .concurrency = clients,
                               .full_run = full,
                               .delay = way.delay.value,
                               .turn = way.most_per_s > 0 ? 1 / (way.most_per_s * part) : 0};
    return serve(requests, limits, [&](const StepLoad& step) { return times.of(step); });
  }

  // As many clients as keep some waiting.
  ServedRun most_answered() const {
    const std::int64_t clients = running() + 1;
    const std::int64_t requests = std::max(least(), clients * waves);
    const Simulation at_once{s, memory, times, {}};
    return at_once.run(std::max(std::min(requests, most()), clients), clients, 0, false, 1);
  }

  ServedRun settled_run(double rate, double part) const {
    const std::int64_t some = way.most_per_s > 0 ? 8 * open_requests : open_requests;
    std::int64_t requests = std::min(some, most());
    for (;;) {
      ServedRun open = run(requests, 0, rate, false, part);
      delay(outside(), open);
      const double enough = settled * rate * open.e2e.mean;
      if (static_cast<double>(requests) >= enough || requests == most()) return open;
      requests = std::min(
          most(), std::max(2 * requests, static_cast<std::int64_t>(std::min(enough, most_output))));
    }
  }

  // `clients` keep as many requests in flight in one replica, of which some are outside the steps.
  // These are taken off on average, which is no integer: a time of one length would bring
  // groups of requests together.
  ServedRun closed_run(std::int64_t clients, double part) const {
    const auto run_of = [&](std::int64_t n) {
      return run(std::max(std::min(std::max(least(), n * rounds()), most()), n), n, 0, false, part);
    };
    const std::int64_t simulated = std::min(clients, most_lines * s.limits.max_num_seqs);
    const auto all = static_cast<double>(simulated);
    const auto inside = [&](double e2e) { return all * e2e / (e2e + outside()); };
    std::int64_t n = simulated, more = n;
    ServedRun few = run_of(n), closed = few;
    while (n > 1 && inside(few.e2e.mean) < static_cast<double>(n) - 0.5) {
      more = std::exchange(n, std::max<std::int64_t>(1, std::llround(inside(few.e2e.mean) - 0.5)));
      closed = std::exchange(few, run_of(n));
    }
    if (more > n + 1) closed = run_of(n + 1);
    double beyond = 0;  // n: as many as are in flight by a line through both runs
    for (int i = 0; i < 50 && more > n; ++i) {
      const double e2e = few.e2e.mean + beyond * (closed.e2e.mean - few.e2e.mean);
      beyond = std::clamp(inside(e2e) - static_cast<double>(n), 0.0, 1.0);
    }
    closed = between(few, closed, beyond);
    delay(outside(), closed);
    set_rate(all / closed.e2e.mean, closed);
    delay(static_cast<double>(clients - simulated) / closed.requests_per_s, closed);
    return closed;
  }

  // Of few requests it is chance how they fall on the steps: the mean of several such runs.
  ServedRun arriving_run(std::int64_t requests, double rate, double part) const {
    const std::int64_t runs = ceil_div(fewest_drawn, requests);
    const auto all = arriving(runs * requests, rate, part);
    ServedRun mean;
    for (auto next = all.begin(); next != all.end(); next += requests) {
      std::vector<ServedRequest> own(next, next + requests);
      const double begun = next == all.begin() ? 0 : (next - 1)->arrival;
      for (ServedRequest& r : own) {
        r.arrival -= begun;
        if (r.ready >= 0) r.ready -= begun;
      }
      const ServedRun one = run(own, 0, true, part);
      const double share = 1 / static_cast<double>(runs);
      add(one, share, share, mean);
      mean.seconds += one.seconds * share;
      mean.pace += one.pace * share;
      for (auto of : {&RequestTimes::ttft, &RequestTimes::tpot, &RequestTimes::e2e})
        std::ranges::copy(one.times.*of, std::back_inserter(mean.times.*of));
    }
    mean.requests = requests;
    mean.ttft = latency_of(mean.times.ttft);
    mean.tpot = latency_of(mean.times.tpot);
    mean.e2e = latency_of(mean.times.e2e);
    return mean;
  }

  // All of so many requests in a replica, from the first to the last.
  ServedRun full_run(double all, std::int64_t clients, double rate, double part) const {
    const auto some = std::clamp<std::int64_t>(std::llround(all), 1, most());
    ServedRun run =
        rate > 0 ? arriving_run(some, rate, part) : this->run(some, clients, rate, true, part);
    const auto shown = static_cast<double>(some);
    const double rounds = clients > 0 ? std::max(1.0, shown / static_cast<double>(clients)) : 1;
    delay(outside(), run);
    run.seconds += outside() * rounds;
    if (rate <= 0 &&
        way.most_per_s > 0) {  // first prompts of the replicas come one after the other
      const double last_after = (1 / part - 1) / way.most_per_s;
      delay(last_after / 2 / rounds, run);  // of each client the first alone
      run.seconds += last_after;
    }
    set_rate(shown / run.seconds, run);
    const double more = all - shown, longer = more / run.pace;
    if (more < 1) return run;
    const bool at_once = clients == 0 && rate <= 0;
    run.ttft = prolonged(run.times.ttft, more, at_once ? longer : 0);
    run.e2e = prolonged(run.times.e2e, more, at_once ? longer : 0);
    run.tpot = prolonged(run.times.tpot, more, 0);
    run.seconds += longer;
    set_rate(all / run.seconds, run);
    return run;
  }
};

// Each run's weight is its requests a second, so that Little's law holds of all.
Latency latency_over(const std::vector<KindRun>& kinds, bool whole,
                     std::vector<double> RequestTimes::*times) {
  std::vector<std::pair<double, double>> all;  // a time, and its weight
  double sum = 0, weights = 0;
  for (const auto& [run, replicas] : kinds) {
    const std::vector<double>& own = run.times.*times;
    const double weight = replicas * run.requests_per_s * (whole ? run.seconds : 1);
    for (const double time : own) {
      all.emplace_back(time, weight / static_cast<double>(own.size()));
      sum += all.back().second * time;
      weights += all.back().second;
    }
  }
  if (all.empty()) return {};
  std::sort(all.begin(), all.end());
  double passed = 0;
  for (const auto& [time, weight] : all) {
    passed += weight;
    if (passed >= 0.95 * weights * (1 - 1e-12)) return {sum / weights, time};
  }
  return {sum / weights, all.back().first};
}

// A benchmark of so many requests lasts as long as its slowest replica.
ServedLoad put_together(const std::vector<KindRun>& kinds, bool whole) {
  ServedLoad load;
  double seconds = 0;
  for (const KindRun& kind : kinds) seconds = std::max(seconds, kind.run.seconds);
  for (const auto& [run, replicas] : kinds) {
    add(run, replicas * (whole ? run.seconds / seconds : 1), replicas, load);
    load.busy += replicas;
    load.simulated = std::max(load.simulated, run.requests);
  }
  load.running /= load.busy;
  load.context /= load.busy;
  if (kinds.size() == 1) {
    const ServedRun& run = kinds.front().run;
    std::tie(load.ttft, load.tpot, load.e2e) = std::tie(run.ttft, run.tpot, run.e2e);
    return load;
  }
  load.ttft = latency_over(kinds, whole, &RequestTimes::ttft);
  load.tpot = latency_over(kinds, whole, &RequestTimes::tpot);
  load.e2e = latency_over(kinds, whole, &RequestTimes::e2e);
  return load;
}

// `run_of` the share of each kind of replica, which is so large a part of `all`.
std::vector<KindRun> spread_runs(std::int64_t all, int dp,
                                 const std::function<ServedRun(std::int64_t, double)>& run_of) {
  std::vector<KindRun> kinds;
  for (const auto& [replicas, share] : spread(all, dp)) {
    const double part = static_cast<double>(share) / static_cast<double>(all);
    kinds.push_back({run_of(share, part), static_cast<double>(replicas)});
  }
  return kinds;
}

// So many requests in all, by clients, as they arrive or all at once.
ServedLoad whole_load(const Simulation& simulation, int dp) {
  const ServingSpec& s = simulation.s;
  const std::int64_t clients = std::min(s.concurrency, s.requests);
  const auto all = static_cast<double>(s.requests);
  if (clients == 0 && all / dp > static_cast<double>(simulation.most())) {  // one more is no matter
    return put_together(
        {{simulation.full_run(all / dp, 0, s.arrival_rate / dp, 1.0 / dp), 1.0 * dp}}, true);
  }
  return put_together(spread_runs(clients > 0 ? clients : s.requests, dp,
                                  [&](std::int64_t share, double part) {
                                    return simulation.full_run(all * part, clients > 0 ? share : 0,
                                                               s.arrival_rate * part, part);
                                  }),
                      true);
}

ServedLoad open_load(const Simulation& simulation, int dp) {
  const ServingSpec& s = simulation.s;
  const auto replicas = static_cast<double>(dp);
  const ServedRun full = simulation.most_answered();
  const double decoded = full.pace * replicas, prompts = simulation.way.most_per_s;
  const double capacity = prompts > 0 ? std::min(prompts, decoded) : decoded;
  const double rate = std::min(s.arrival_rate, capacity);
  const auto settled_load = [&] {
    return put_together({{simulation.settled_run(rate / dp, 1 / replicas), replicas}}, false);
  };
  ServedLoad load;
  if (s.arrival_rate > capacity) {
    load = capacity < decoded ? settled_load() : put_together({{full, replicas}}, false);
    load.saturated = true;
    if (s.requests > 0) load.run = whole_load(simulation, dp);
    load.ttft = load.e2e = {without_end, without_end};
  } else {
    load = s.requests > 0 ? whole_load(simulation, dp) : settled_load();
  }
  if (load.saturated || s.requests == 0 || load.requests_per_s > rate) load.answer(s, rate);
  load.capacity = capacity;
  return load;
}

}  // namespace

void ServedLoad::answer(const ServingSpec& s, double requests_a_second) {
  requests_per_s = requests_a_second;
  output_per_s = requests_per_s * s.output.mean;
  total_per_s = requests_per_s * (s.output.mean + s.input.mean);
}

std::vector<ClientShare> spread(std::int64_t all, int replicas) {
  const std::int64_t each = all / replicas;
  const int more = static_cast<int>(all % replicas);
  std::vector<ClientShare> shares;
  if (more > 0) shares.push_back({more, each + 1});
  if (each > 0) shares.push_back({replicas - more, each});
  return shares;
}

MeanShare in_flight_of(const ServingSpec& s, int dp) {
  const auto most = static_cast<double>(s.limits.max_num_seqs);
  if (s.concurrency > 0) return mean_share(s.concurrency, dp);
  if (s.arrival_rate > 0) return {most, static_cast<double>(dp)};
  const MeanShare share = mean_share(s.requests, dp);
  return {std::min(most, share.share), share.busy};
}

ServedLoad served_load(const ServingSpec& s, const ServingMemory& memory, int dp,
                       const StepTimes& times, const WayIn& way) {
  const Simulation simulation{s, memory, times, way};
  if (s.arrival_rate > 0) return open_load(simulation, dp);
  const auto closed = [&](std::int64_t share, double part) {
    return simulation.closed_run(share, part);
  };
  ServedLoad load = s.requests > 0 ? whole_load(simulation, dp)
                                   : put_together(spread_runs(s.concurrency, dp, closed), false);
  load.capacity = overloaded_rate(times, s, memory) * dp;
  if (way.most_per_s > 0) load.capacity = std::min(load.capacity, way.most_per_s);
  return load;
}

}  // namespace costmodel
