#include "costmodel/serving/serving_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/serving/disaggregation.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace costmodel {

namespace {

// A token's parts are those of one decode step, and what its time has beyond that. The mean of
// steps of drawn lengths may be below the step of their mean: its parts are those in proportion.
void split_token(const StepTimes& times, const StepLoad& decode, ServingEstimate& e) {
  const StepParts step = times.of(decode);
  const double all = step.total().value;
  e.token = {};
  e.token.add(step, e.tpot.mean > 0 ? std::min(1.0, e.tpot.mean / all) : 1);
  e.stalled = max(Seconds(0), Seconds(e.tpot.mean) - e.token.total());
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

// Requests through the replicas, which come by `way`.
ServingEstimate simulate(const ServingScenario& s, const ServingSpec& serving,
                         const StepTimes& times, const WayIn& way, ServingEstimate e) {
  e.pass = times.of(decode_load(serving, 1)).total();
  e.turning = turning_batch(times, serving);
  static_cast<ServedLoad&>(e) = served_load(serving, e.memory, e.sizes.dp, times, way);
  StepLoad decode = decode_load(serving, std::max(1.0, e.running));
  if (e.context > 0) decode.decode_context = decode.decodes * e.context;
  split_token(times, decode, e);
  price(s.cluster, e);
  return e;
}

// What both the simulated and the closed estimate know.
ServingEstimate ready(const ServingScenario& s, const ServingSizes& sizes,
                      std::optional<Bytes> weights = {}) {
  ServingEstimate e;
  e.sizes = sizes;
  e.devices = sizes.devices();
  e.weights = s.serving.weights;
  e.memory = serving_memory(s, sizes, weights);
  e.fits = e.memory.fits();
  e.held = requests_held(e.memory, s.serving);
  return e;
}

void require_host_link(const ServingScenario& s) {
  if (s.serving.cpu_offload.value <= 0 || s.cluster.device.host_bandwidth.value > 0) return;
  throw ConfigError(
      s.batch_mark, "cpu_offload_bytes, and the device says no host bandwidth",
      fmt::format("give it one: --set 'cluster.device={{base: {}, host: {{bandwidth_bytes_per_s: "
                  "25e9, source: assumed}}}}', or leave it out",
                  s.cluster.device.name));
}

// Of requests that come all at once the first to end do so after one cycle of those that run, the
// last when all are answered; what of the mean is not decoding precedes the first token.
void add_queue(const ServingSpec& s, int dp, SteadyState& state) {
  if (s.concurrency > 0 || s.arrival_rate > 0) return;
  const double all = mean_share(s.requests, dp).share;
  state.e2e = max(state.e2e, Seconds((state.running + all) / (2 * state.requests_per_s)));
  const Seconds decoding = state.tpot * std::max(0.0, s.output.mean - 1);
  state.ttft = max(state.ttft, state.e2e - decoding);
}

void fill_from_state(const SteadyState& state, const ServingSpec& s, double rate,
                     ServingEstimate& e) {
  e.answer(s, rate);
  e.ttft = {state.ttft.value, state.ttft.value};
  e.tpot = {state.tpot.value, state.tpot.value};
  e.e2e = {state.e2e.value, state.e2e.value};
  e.running = state.running;
}

// The least time of a token whatever the engine: the weights that it uses read once by all devices
// together, at their peak bandwidth.
Seconds least_token_time(const ModelSpec& model, const ClusterSpec& cluster, WeightFormat format) {
  const double table = static_cast<double>(model.vocab * model.embedding_width());
  const double used = std::max(0.0, active_parameter_count(model) - 2 * table);
  const double bytes = used * bytes_of(format);
  return Bytes(bytes) / BytesPerSecond(cluster.device.memory_bandwidth.value *
                                       static_cast<double>(cluster.devices));
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
  ServingEstimate e = ready(s, sizes);
  if (e.memory.tokens > 0) require_room(s, e);
  if (!e.fits) return e;
  const StepTimes times(s.model, s.cluster, s.serving, sizes);
  e.prompt = prompt_time(times, s.serving);
  return simulate(s, s.serving, times, {}, e);
}

ServingEstimate quick_estimate(const ServingScenario& s, const ServingSizes& sizes,
                               const StepTimes& times) {
  const ServingSpec& serving = s.serving;
  ServingEstimate e = ready(s, sizes, times.weights_held());
  e.fits = e.memory.tokens >= serving.input.mean + serving.output.mean;
  if (!e.fits) return e;
  const double rate = serving.arrival_rate / sizes.dp;
  e.capacity = overloaded_rate(times, serving, e.memory);
  e.saturated = rate > e.capacity;
  const MeanShare load = in_flight_of(serving, sizes.dp);
  SteadyState state = rate > 0 ? state_at(times, serving, e.memory, rate)
                               : steady_state(times, serving, e.memory, load.share);
  add_queue(serving, sizes.dp, state);
  const double answered = rate > 0 ? std::min(rate, e.capacity) : state.requests_per_s;
  fill_from_state(state, serving, answered * load.busy, e);
  if (e.saturated) e.ttft = e.e2e = {without_end, without_end};
  e.capacity *= sizes.dp;
  split_token(times, decode_load(serving, std::max(1.0, state.running)), e);
  e.prompt = state.prompt;
  price(s.cluster, e);
  return e;
}

void require_pools(const ServingScenario& s) {
  if (!s.plan.disaggregation) return;
  if (s.serving.decode_only) {
    throw ConfigError(s.plan.mark,
                      "plan.disaggregation has devices for prompts, and serving.decode_only "
                      "leaves those uncounted",
                      "leave one of them out");
  }
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

ServingEstimate disaggregated_estimate(const ServingScenario& s, bool simulated) {
  require_possible(s);
  require_pools(s);
  SHARDPLAN_CHECK(s.plan.disaggregation.has_value());
  const auto& [prefill, decode] = *s.plan.disaggregation;
  const ServingSpec& serving = s.serving;
  ServingEstimate e = ready(s, decode);
  e.devices = s.plan.disaggregation->devices();
  const StepTimes prompt_times(s.model, s.cluster, serving, prefill);
  const PromptPool prompts = prompt_pool(s, prefill, prompt_times);
  ServingSpec decoding = serving;
  decoding.decode_only = true;
  const StepTimes times(s.model, s.cluster, decoding, decode);
  const TokenPool tokens = token_pool(s, decode, times);
  e.fits = e.fits && prompts.fits;
  if (!prompts.fits) e.memory = serving_memory(s, prefill);
  if (!e.fits) return e;
  require_room(s, e);
  e.prompt = prompts.prompt;
  e.sent = prompts.sent;
  e.transfer = transfer_of(prompts, tokens);
  if (simulated) return simulate(s, decoding, times, way_in(prompts, tokens), e);
  const PooledRates rates = pooled_rates(serving, prompts, tokens);
  SteadyState state = tokens.state;
  state.ttft = rates.ttft;
  state.e2e = rates.e2e;
  fill_from_state(state, serving, rates.rate, e);
  return e;
}

ServingEstimate planned_estimate(const ServingScenario& s) {
  return s.plan.disaggregation ? disaggregated_estimate(s) : serving_estimate(s, sizes_of(s));
}

}  // namespace costmodel
