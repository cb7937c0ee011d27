#include "costmodel/serving/serving_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/disaggregation.hpp"
#include "costmodel/serving/served_load.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace costmodel {

namespace {

void fill_from_load(const ServedLoad& load, ServingEstimate& e) {
  e.requests_per_s = load.requests_per_s;
  e.output_per_s = load.output_per_s;
  e.total_per_s = load.total_per_s;
  e.ttft = load.ttft;
  e.tpot = load.tpot;
  e.e2e = load.e2e;
  e.running = load.running;
  e.preempted = load.preempted;
  e.simulated = load.simulated;
  e.saturated = load.saturated;
  if (load.capacity > 0) e.capacity = load.capacity;
}

// A request's way to the engine and back is outside its steps.
void add_request(Seconds outside, ServingEstimate& e) {
  for (Latency* latency : {&e.ttft, &e.e2e}) {
    latency->mean += outside.value;
    latency->p95 += outside.value;
  }
}

void price(const ClusterSpec& cluster, ServingEstimate& e) {
  e.usd_per_hour = cluster.operation.usd_per_device_hour * static_cast<double>(e.devices);
  if (e.usd_per_hour > 0 && e.output_per_s > 0)
    e.usd_per_million_output = e.usd_per_hour / (e.output_per_s * 3600) * 1e6;
}

void require_room(const ServingScenario& s, const ServingEstimate& e) {
  const double one = s.serving.input.mean + s.serving.output.mean;
  if (e.memory.tokens >= one) return;
  throw ConfigError(
      s.input_mark,
      fmt::format("the cache of a replica holds {} tokens, and one request has {}",
                  format_integer(static_cast<long long>(e.memory.tokens)),
                  format_integer(std::llround(one))),
      "take more devices a replica (plan.tp, plan.pp), a narrower kv_cache or weights, or shorter "
      "requests");
}

void note_assumptions(const ServingScenario& s, ServingEstimate& e) {
  const DeviceSpec& device = s.cluster.device;
  if (!s.model.questioned.empty()) e.notes.push_back("model: " + s.model.questioned);
  if (e.weights == WeightFormat::fp8 && device.peak_of(Precision::fp8).value <= 0) {
    e.notes.push_back(
        "the device has no fp8 products: fp8 weights are read in 8 bits and "
        "multiplied in 16");
  }
  if (s.model.experts > 0)
    e.notes.push_back("tokens choose their experts evenly and independently of one another");
  if (e.devices < s.cluster.devices) {
    e.notes.push_back(fmt::format("{} of {} devices are in no replica",
                                  s.cluster.devices - e.devices, s.cluster.devices));
  }
  if (s.serving.swap_space.value > 0)
    e.notes.push_back("swap_space holds preempted requests; here they are computed again");
}

// An open load so near to the capacity keeps queues longer than a run of some requests shows.
constexpr double nearly_full = 0.9;

void note_load(const ServingScenario& s, const ServedLoad& load, ServingEstimate& e) {
  if (load.busy < e.sizes.dp) {
    e.notes.push_back(fmt::format("{:.0f} of {} replicas have no request: there are fewer {}",
                                  e.sizes.dp - load.busy, e.sizes.dp,
                                  s.serving.concurrency > 0 ? "in flight" : "in the run"));
  }
  const double full = load.capacity > 0 ? s.serving.arrival_rate / load.capacity : 0;
  if (full > nearly_full && full <= 1) {
    e.notes.push_back(
        fmt::format("arrivals take {:.0f} % of what the plan can do: latencies are of {} requests "
                    "of a replica, and would still grow over more of them",
                    100 * full, format_integer(load.simulated)));
  }
}

// What both the simulated and the closed estimate know.
struct ServingReady {
  ServingEstimate estimate;
  ServingSpec serving;
};

ServingReady ready(const ServingScenario& s, const ServingSizes& sizes, Bytes weights) {
  ServingReady r{{}, s.serving};
  r.estimate.sizes = sizes;
  r.estimate.devices = sizes.devices();
  r.estimate.weights = s.serving.weights;
  r.estimate.memory = serving_memory(s.model, s.cluster, s.serving, sizes, weights);
  r.estimate.fits = r.estimate.memory.fits();
  r.estimate.held = requests_held(r.estimate.memory, s.serving);
  return r;
}

ServingReady ready(const ServingScenario& s, const ServingSizes& sizes) {
  return ready(s, sizes, weights_held(s.model, s.serving.weights, sizes));
}

void require_host_link(const ServingScenario& s) {
  if (s.serving.cpu_offload.value <= 0 || s.cluster.device.host_bandwidth.value > 0) return;
  throw ConfigError(
      s.batch_mark, "cpu_offload_bytes, and the device says no host bandwidth",
      fmt::format("give it one: --set 'cluster.device={{base: {}, host: {{bandwidth_bytes_per_s: "
                  "25e9, source: assumed}}}}', or leave it out",
                  s.cluster.device.name));
}

// Requests in flight in a busy replica, and busy replicas: those of the load, or for all at once as
// many as run.
MeanShare in_flight_of(const ServingSpec& s, int dp) {
  if (s.concurrency > 0) return mean_share(s.concurrency, dp);
  const auto most = static_cast<double>(s.limits.max_num_seqs);
  if (s.requests <= 0) return {most, static_cast<double>(dp)};
  MeanShare share = mean_share(s.requests, dp);
  share.share = std::min(most, share.share);
  return share;
}

// Of an open load: Little's law, running = rate · time in the replica, found by halving.
double open_in_flight(const StepTimes& times, const ServingEstimate& e, const ServingSpec& s,
                      double rate) {
  double low = 1e-3, high = static_cast<double>(s.limits.max_num_seqs);
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    const SteadyState state = steady_state(times, s, e.memory, middle);
    (state.requests_per_s < rate ? low : high) = middle;
  }
  return high;
}

// Of requests that come all at once the first to end do so after one cycle of those that run, the
// last when all are answered; what of the mean is not decoding precedes the first token.
void add_queue(const ServingSpec& s, int dp, SteadyState& state) {
  if (s.concurrency > 0 || s.arrival_rate > 0) return;
  const double all = mean_share(s.requests, dp).share;
  if (all <= state.running) return;
  state.e2e = Seconds((state.running + all) / (2 * state.requests_per_s));
  const Seconds decoding = state.tpot * std::max(0.0, s.output.mean - 1);
  state.ttft = max(state.ttft, state.e2e - decoding);
}

void fill_from_state(const SteadyState& state, const ServingSpec& s, double rate,
                     ServingEstimate& e) {
  e.requests_per_s = rate;
  e.output_per_s = e.requests_per_s * s.output.mean;
  e.total_per_s = e.requests_per_s * (s.output.mean + s.input.mean);
  e.ttft = {state.ttft.value, state.ttft.value};
  e.tpot = {state.tpot.value, state.tpot.value};
  e.e2e = {state.e2e.value, state.e2e.value};
  e.running = state.running;
}

}  // namespace

void require_possible(const ServingScenario& s) {
  require_host_link(s);
  const WeightFormat format = s.serving.weights_open ? WeightFormat::int4 : s.serving.weights;
  const Seconds least = least_token_time(s.model, s.cluster, format);
  const Seconds bound = s.serving.bound.tpot;
  if (bound.value <= 0 || bound >= least) return;
  throw ConfigError(
      s.bound_mark,
      fmt::format("latency_bound.tpot_s {} is below one pass: all {} devices together take {} to "
                  "read the {} weights of a token once",
                  format_seconds(bound), s.cluster.devices, format_seconds(least),
                  to_string(format)),
      fmt::format("allow at least {}, take more devices, or narrower weights",
                  format_seconds(least)));
}

ServingEstimate serving_estimate(const ServingScenario& s, const ServingSizes& sizes) {
  require_possible(s);
  auto [e, serving] = ready(s, sizes);
  note_assumptions(s, e);
  if (e.memory.tokens > 0) require_room(s, e);
  if (!e.fits) return e;
  const StepTimes times(s.model, s.cluster, serving, sizes);
  e.prompt = prompt_time(times, serving);
  e.pass = times.of(decode_load(serving, 1)).total();
  e.turning = turning_batch(times, serving);
  e.capacity = overloaded_rate(times, serving, e.memory) * sizes.dp;
  const ServedLoad load = served_load(serving, e.memory, sizes.dp, times);
  fill_from_load(load, e);
  if (e.preempted > 0) {
    e.notes.push_back(fmt::format(
        "{} times a request was put back for lack of cache and computed again", e.preempted));
  }
  add_request(serving.engine.constants.request, e);
  note_load(s, load, e);
  StepLoad decode = decode_load(serving, std::max(1.0, load.running));
  if (load.context > 0) decode.decode_context = decode.decodes * load.context;
  e.token = times.of(decode);
  e.stalled = max(Seconds(0), Seconds(e.tpot.mean) - e.token.total());
  price(s.cluster, e);
  return e;
}

ServingEstimate quick_estimate(const ServingScenario& s, const ServingSizes& sizes) {
  return quick_estimate(s, sizes, StepTimes(s.model, s.cluster, s.serving, sizes));
}

ServingEstimate quick_estimate(const ServingScenario& s, const ServingSizes& sizes,
                               const StepTimes& times) {
  auto [e, serving] = ready(s, sizes, times.weights_held());
  if (!e.fits || e.memory.tokens < serving.input.mean + serving.output.mean) {
    e.fits = false;
    return e;
  }
  const double rate = serving.arrival_rate / sizes.dp;
  e.capacity = overloaded_rate(times, serving, e.memory);
  e.saturated = rate > e.capacity;
  MeanShare load = in_flight_of(serving, sizes.dp);
  if (rate > 0) load = {open_in_flight(times, e, serving, rate), static_cast<double>(sizes.dp)};
  SteadyState state = steady_state(times, serving, e.memory, load.share);
  add_queue(serving, sizes.dp, state);
  const double answered = rate > 0 ? std::min(rate, e.capacity) : state.requests_per_s;
  fill_from_state(state, serving, answered * load.busy, e);
  add_request(serving.engine.constants.request, e);
  e.capacity *= sizes.dp;
  e.token = times.of(decode_load(serving, std::max(1.0, state.running)));
  e.prompt = state.prompt;
  price(s.cluster, e);
  return e;
}

void require_pools(const ServingScenario& s) {
  if (!s.plan.disaggregation) return;
  const auto& [prefill, decode] = *s.plan.disaggregation;
  for (const ServingSizes& sizes : {prefill, decode}) {
    const std::string fault = sizes_fault(sizes, s.model, s.cluster);
    if (!fault.empty()) throw ConfigError(s.plan.mark, fault, "choose sizes that divide");
  }
  const std::int64_t devices = s.plan.disaggregation->devices();
  if (devices <= s.cluster.devices) return;
  throw ConfigError(
      s.plan.mark,
      fmt::format("prefill and decode have {} devices of {}", devices, s.cluster.devices),
      "take fewer replicas of one of them");
}

ServingEstimate disaggregated_estimate(const ServingScenario& s) {
  require_possible(s);
  require_pools(s);
  SHARDPLAN_CHECK(s.plan.disaggregation.has_value());
  const auto& [prefill, decode] = *s.plan.disaggregation;
  auto [e, serving] = ready(s, decode);
  e.devices = s.plan.disaggregation->devices();
  const StepTimes prompt_times(s.model, s.cluster, serving, prefill);
  const StepTimes token_times(s.model, s.cluster, serving, decode);
  const PromptPool prompts = prompt_pool(s.model, s.cluster, serving, prefill, prompt_times);
  const TokenPool tokens = token_pool(s.model, s.cluster, serving, decode, token_times);
  e.fits = e.fits && prompts.fits;
  if (!prompts.fits) e.memory = serving_memory(s.model, s.cluster, serving, prefill);
  if (!e.fits) return e;
  require_room(s, e);
  e.prompt = prompts.prompt;
  e.sent = prompts.sent;
  e.pass = token_times.of(decode_load(serving, 1)).total();
  e.turning = turning_batch(token_times, serving);
  const PooledRates rates = pooled_rates(serving, prompts, tokens);
  e.transfer = rates.transfer;
  e.capacity = rates.capacity;
  e.saturated = rates.saturated;
  fill_from_state(tokens.state, serving, rates.rate, e);
  // Little's law: those that decode, for as long as that takes.
  e.running = std::min(e.running, rates.rate / decode.dp * tokens.state.tpot.value *
                                      std::max(1.0, serving.output.mean - 1));
  const double ttft = rates.ttft.value;
  const bool random = serving.arrival_rate > 0;
  e.ttft = {ttft, random ? ttft + 2 * rates.wait.value : ttft};
  e.e2e = {rates.e2e.value, rates.e2e.value};
  add_request(serving.engine.constants.request, e);
  e.token = tokens.state.step;
  e.notes.push_back(fmt::format("{} of {} devices take prompts alone; tokens a device are of all",
                                prefill.devices(), e.devices));
  if (serving.arrival_rate <= 0) {
    e.notes.emplace_back(
        "closed form: prompts are taken to follow one another evenly; those that come together "
        "wait for one another, and their first tokens come later");
  }
  price(s.cluster, e);
  return e;
}

ServingEstimate planned_estimate(const ServingScenario& s) {
  return s.plan.disaggregation ? disaggregated_estimate(s) : serving_estimate(s, sizes_of(s));
}

bool keeps(const ServingEstimate& e, const LatencyBound& bound) {
  const auto within = [](double mean, Seconds most) {
    return most.value <= 0 || mean <= most.value;
  };
  return e.fits && !e.saturated && within(e.ttft.mean, bound.ttft) &&
         within(e.tpot.mean, bound.tpot) && within(e.e2e.mean, bound.e2e);
}

bool reaches(const ServingEstimate& e, const ServingGoal& goal) {
  const auto affordable = [](double usd, double most) { return most <= 0 || usd <= most; };
  return e.output_per_s >= goal.output_per_s && affordable(e.usd_per_hour, goal.usd_per_hour) &&
         affordable(e.usd_per_million_output, goal.usd_per_million);
}

std::vector<LoadPoint> load_curve(const ServingScenario& s, const ServingSizes& sizes) {
  const auto [e, serving] = ready(s, sizes);
  std::vector<LoadPoint> curve;
  if (!e.fits) return curve;
  const StepTimes times(s.model, s.cluster, serving, sizes);
  const double most =
      std::min(static_cast<double>(serving.limits.max_num_seqs), std::max(1.0, e.held));
  for (double n = 1; n < 2 * most; n *= 2) {
    const double at = std::min(n, most);
    const SteadyState state = steady_state(times, serving, e.memory, at);
    curve.push_back({at * sizes.dp, state.requests_per_s * sizes.dp, state.output_per_s * sizes.dp,
                     state.ttft + serving.engine.constants.request, state.tpot});
  }
  return curve;
}

}  // namespace costmodel
