#include "costmodel/serving/steady_state.hpp"

#include <algorithm>
#include <cmath>

namespace costmodel {

namespace {

double prefilled(const ServingSpec& s) {
  return s.decode_only ? 0 : s.input.mean * (1 - s.prefix_hit_share);
}

// A mean load of prompts: `tokens` of them in a step, in the middle of theirs.
void add_prompts(StepLoad& load, const ServingSpec& s, double tokens) {
  const double own = prefilled(s), before = s.input.mean - own;
  if (own <= 0) return;
  load.prefill_tokens += tokens;
  load.prefill_pairs += tokens / own * prefill_pairs(own, before);
  load.prompts += tokens / own;
}

}  // namespace

StepLoad decode_load(const ServingSpec& s, double running) {
  StepLoad load;
  load.decodes = running;
  load.decode_context = running * (s.input.mean + s.output.mean / 2);
  return load;
}

Seconds prompt_time(const StepTimes& times, const ServingSpec& s) {
  const double own = prefilled(s);
  if (own <= 0) return Seconds(0);
  const auto budget = static_cast<double>(s.limits.max_num_batched_tokens);
  const double steps = s.limits.chunked_prefill ? std::ceil(own / budget) : 1;
  StepLoad load;
  add_prompts(load, s, own / steps);
  load.prompts = 1 / steps;
  return times.of(load).total() * steps;
}

SteadyState steady_state(const StepTimes& times, const ServingSpec& s, const ServingMemory& memory,
                         double in_flight) {
  SteadyState state;
  const double whole =
      s.input.mean + (s.engine.reserves_output ? s.output.mean : s.output.mean / 2);
  state.running = std::min({in_flight, static_cast<double>(s.limits.max_num_seqs),
                            std::max(1.0, memory.tokens / whole)});
  const double n = state.running, steps = std::max(1.0, s.output.mean - 1), own = prefilled(s);
  state.prompt = prompt_time(times, s);
  const auto budget = static_cast<double>(s.limits.max_num_batched_tokens);
  StepLoad load = decode_load(s, n);
  Seconds cycle;  // in which every request of `running` is answered once
  if (s.limits.chunked_prefill || own <= 0) {
    // A request spends its prompt's steps without decoding; n is what both kinds are.
    const double rate = n * own / (steps + 1);
    if (n + rate <= budget) {
      add_prompts(load, s, rate);
      state.step = times.of(load);
      cycle = state.step.total() * (steps + 1);
      state.ttft = state.step.total();
    } else {  // prompts wait for room in the steps
      const double rounds = n * (own + steps) / budget;
      load = decode_load(s, n * steps / rounds);
      add_prompts(load, s, n * own / rounds);
      state.step = times.of(load);
      cycle = state.step.total() * rounds;
      state.ttft = max(cycle - state.step.total() * steps, state.step.total());
    }
    state.tpot = state.step.total();
  } else {
    const double together = std::clamp(std::floor(budget / own), 1.0, std::max(1.0, n));
    StepLoad prompts;
    add_prompts(prompts, s, own * together);
    const Seconds prefill = times.of(prompts).total();
    state.step = times.of(load);
    const Seconds stalls = prefill * (n / together);  // of a cycle
    cycle = state.step.total() * steps + stalls;
    state.ttft = prefill + state.step.total() / 2;
    state.tpot = (cycle - prefill) / steps;
  }
  state.requests_per_s = n / cycle.value;
  state.output_per_s = state.requests_per_s * s.output.mean;
  state.e2e = Seconds(in_flight / state.requests_per_s);
  state.ttft = max(state.ttft, state.e2e - steps * state.tpot);
  return state;
}

double turning_batch(const StepTimes& times, const ServingSpec& s) {
  const auto turned = [&](double n) {
    const StepParts parts = times.of(decode_load(s, n));
    return parts.arithmetic > parts.reading;
  };
  double high = 1;
  while (high <= 65'536 && !turned(high)) high *= 2;
  if (high > 65'536) return 0;
  double low = high / 2;
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (turned(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace costmodel
