#include "costmodel/serving/disaggregation.hpp"

#include <algorithm>

#include "costmodel/cost/collective.hpp"

namespace costmodel {

namespace {

// Of a prompt's keys and values, the part of a device of such an instance.
Bytes held_by_device(const ServingScenario& s, const ServingSizes& sizes) {
  const double layers = static_cast<double>(s.model.layers) / sizes.pp;
  return cache_bytes_per_layer(s.model, sizes.tp, s.serving.kv_cache) *
         (layers * s.serving.input.mean);
}

// All devices of an instance send, or receive, their parts at the same time, over the outermost
// tier that the cluster's devices span.
Seconds moving(const ServingScenario& s, const ServingSizes& sizes) {
  const ClusterSpec& on = s.cluster;
  const std::size_t tier = layout_of(static_cast<int>(on.devices), 1, on).outermost();
  const std::int64_t senders = std::min(sizes.replica(), on.devices_per_node);
  return transfer_time(held_by_device(s, sizes), tier, senders, on);
}

}  // namespace

PromptPool prompt_pool(const ServingScenario& scenario, const ServingSizes& sizes,
                       const StepTimes& times) {
  const ServingSpec& s = scenario.serving;
  PromptPool pool;
  pool.sizes = sizes;
  const ServingMemory memory = serving_memory(scenario, sizes, times.weights_held());
  pool.fits = memory.fits() && memory.tokens >= s.input.mean;
  if (!pool.fits) return pool;
  pool.prompt = prompt_time(times, s);
  pool.turn = prompt_turn(times, s);
  pool.sent = static_cast<double>(sizes.replica()) * held_by_device(scenario, sizes);
  pool.sending = moving(scenario, sizes);
  pool.rate = sizes.dp / max(pool.turn, pool.sending).value;
  return pool;
}

TokenPool token_pool(const ServingScenario& scenario, const ServingSizes& sizes,
                     const StepTimes& times) {
  const ServingSpec& s = scenario.serving;
  TokenPool pool;
  pool.sizes = sizes;
  pool.memory = serving_memory(scenario, sizes, times.weights_held());
  pool.fits = pool.memory.fits() && pool.memory.tokens >= s.input.mean + s.output.mean;
  if (!pool.fits) return pool;
  pool.receiving = moving(scenario, sizes);
  ServingSpec alone = s;
  alone.decode_only = true;
  alone.engine.constants.request = {};
  const double held = requests_held(pool.memory, s);
  const double most = std::max(1.0, std::min(in_flight_of(s, sizes.dp).share, held));
  pool.state = steady_state(times, alone, pool.memory, most);
  const double own = pool.state.requests_per_s;
  pool.rate = sizes.dp * std::min(own, 1 / std::max(1e-12, pool.receiving.value));
  if (s.arrival_rate > 0 && s.arrival_rate < pool.rate)
    pool.state = state_at(times, alone, pool.memory, s.arrival_rate / sizes.dp);
  return pool;
}

WayIn way_in(const PromptPool& prompts, const TokenPool& tokens) {
  return {prompts.prompt + transfer_of(prompts, tokens),
          std::min(prompts.rate, tokens.sizes.dp / std::max(1e-12, tokens.receiving.value))};
}

PooledRates pooled_rates(const ServingSpec& s, const PromptPool& prompts, const TokenPool& tokens) {
  PooledRates r;
  r.tpot = tokens.state.tpot;
  const Seconds decoding = r.tpot * std::max(0.0, s.output.mean - 1);
  const Seconds first = s.engine.constants.request + way_in(prompts, tokens).delay + r.tpot;
  r.capacity = std::min(prompts.rate, tokens.rate);
  r.ttft = first;
  if (s.concurrency > 0) {
    const auto all = static_cast<double>(s.concurrency);
    r.capacity = std::min(r.capacity, all / (first + decoding).value);
    r.ttft = max(first, Seconds(all / r.capacity) - decoding);
  }
  r.rate = r.capacity;
  if (s.concurrency == 0 && s.arrival_rate <= 0 && s.requests > 0) {
    const auto all = static_cast<double>(s.requests);
    const Seconds queue(all / prompts.rate), answers(all / tokens.rate);
    r.rate = all / max(queue + decoding, first + answers).value;
    r.ttft = first + queue / 2;
  }
  if (s.arrival_rate > 0) {
    r.saturated = s.arrival_rate > r.capacity;
    r.rate = std::min(s.arrival_rate, r.capacity);
    const double load = std::min(0.999, r.rate / prompts.rate);
    r.ttft = first + prompts.turn * (load / (2 * (1 - load)));
  }
  r.e2e = r.ttft + decoding;
  return r;
}

}  // namespace costmodel
