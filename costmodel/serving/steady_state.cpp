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
  load.prefilling += std::max(1.0, tokens / own);
}

// `decodes` sequences, and so many tokens of prompts.
StepParts step_of(const StepTimes& times, const ServingSpec& s, double decodes, double tokens) {
  StepLoad load = decode_load(s, decodes);
  add_prompts(load, s, tokens);
  return times.of(load);
}

// A cycle in which each of `n` running requests is answered once.
struct Cycle {
  Seconds whole, first, next;  // first: until a request's first token; next: between tokens
  Seconds wait;                // of a request that arrives at any time, for what runs then
};

struct CycleOf {
  const StepTimes& times;
  const ServingSpec& s;
  double n = 0, steps = 0, own = 0;
  bool arriving = false;  // at any time, so that a request meets n others; else n - 1

  double budget() const { return static_cast<double>(s.limits.max_num_batched_tokens); }

  // Requests with answers of one length that are in flight all the time end and start in groups.
  bool alike() const { return s.output.p95 <= 0 && s.output.most <= 0 && !arriving; }

  StepParts step(double decodes, double prompts = 0) const {
    return step_of(times, s, decodes, own * prompts);
  }
};

// Prompts that start in the same step, of those that come independently of one another: the mean
// over steps that have any, and over prompts. `mean`: over all steps.
struct Together {
  double of_step = 1, of_prompt = 1;
};
Together independent(double mean) {
  return {mean > 1e-6 ? mean / -std::expm1(-mean) : 1, 1 + mean};
}

// More prompts than steps: every step carries its share of them, within the budget.
Cycle crowded_cycle(const CycleOf& c, double life) {
  const double rounds = std::max(life, c.n * (c.own + c.steps) / c.budget());
  const StepParts step = step_of(c.times, c.s, c.n * c.steps / rounds, c.n * c.own / rounds);
  const Seconds next = step.total(), all = rounds * next + step.passing;
  return {all, all - c.steps * next, next, next / 2};
}

// Prompts as many as a step's budget has room for, or a part of one, run beside the decoding of the
// others, whose steps are longer by it.
Cycle chunked_cycle(const CycleOf& c) {
  const Seconds plain = c.step(c.n).total();
  if (c.own <= 0) return {plain * (c.steps + 1), plain, plain, plain / 2};
  // So many prompts and the decodes of the rest fill a step; where that is no whole number, the
  // last one is cut and the steps are full all the same.
  const double fit = std::max(1.0, (c.budget() - c.n) / std::max(1.0, c.own - 1));
  Together together;
  if (c.alike()) {
    together.of_step = together.of_prompt = std::clamp(c.n, 1.0, fit);
  } else if (fit > 1) {
    together = independent(c.n / (1 + c.steps));
    together = {std::min(together.of_step, fit), std::min(together.of_prompt, fit)};
  }
  const double chunks = std::ceil(c.own / std::max(1.0, c.budget() - (c.n - together.of_step)));
  const double life = chunks + c.steps, mixed = c.n * chunks / together.of_step;
  if (mixed > life) return crowded_cycle(c, life);
  const Seconds longer = c.step(c.n - together.of_step, together.of_step / chunks).total();
  const double others = c.arriving ? std::min(mixed, c.steps) : std::max(0.0, mixed - chunks);
  Cycle cycle;
  cycle.next = (longer * others + plain * (c.steps - others)) / c.steps;
  const StepParts own_step = c.step(c.n - together.of_step, together.of_prompt / chunks);
  cycle.whole = chunks * longer + own_step.passing + c.steps * cycle.next;
  cycle.first = chunks * own_step.total() + own_step.passing;
  // The rest of the step that runs; and those before it, as in M/D/1 (Pollaczek and Khinchine).
  const double busy = std::min(0.99, mixed / life);
  cycle.wait = busy * longer / 2 + (1 - busy) * plain / 2;
  if (chunks > 1) cycle.wait += busy / (2 * (1 - busy)) * cycle.first;
  return cycle;
}

// Prompts as many as the budget has room for interrupt the decoding of all others. Those of answers
// of one length stay in step: all prompts stand before the first decode.
Cycle whole_prompts_cycle(const CycleOf& c) {
  const double fit = std::clamp(std::floor(c.budget() / c.own), 1.0, std::max(1.0, c.n));
  const auto parts = [&](double prompts) { return c.step(0, std::min(prompts, fit)); };
  const auto rounds = [&](double prompts) { return std::max(1.0, prompts / fit); };
  Cycle cycle;
  const Seconds plain = c.step(c.n).total();
  Together together = independent(c.n / c.steps);
  if (c.alike()) together.of_step = together.of_prompt = std::max(1.0, c.n);
  const Seconds stalls =
      c.n / together.of_step * rounds(together.of_step) * parts(together.of_step).total();
  const StepParts own_step = parts(together.of_prompt);
  cycle.first = (1 + rounds(together.of_prompt)) / 2 * own_step.total() + own_step.passing;
  const Seconds others = c.arriving ? stalls : max(Seconds(0), stalls - cycle.first);
  cycle.next = plain + others / c.steps;
  cycle.whole = cycle.first + c.steps * cycle.next;
  const double busy = stalls / cycle.whole;
  cycle.wait = busy * parts(together.of_step).total() / 2 + (1 - busy) * plain / 2;
  return cycle;
}

double running_at_most(const ServingSpec& s, const ServingMemory& memory, double in_flight) {
  const double whole =
      s.input.mean + (s.engine.reserves_output ? s.output.mean : s.output.mean / 2);
  return std::min({in_flight, static_cast<double>(s.limits.max_num_seqs),
                   std::max(1.0, memory.tokens / whole)});
}

Cycle cycle_of(const CycleOf& c) {
  return c.s.limits.chunked_prefill || c.own <= 0 ? chunked_cycle(c) : whole_prompts_cycle(c);
}

double decodes_of(const ServingSpec& s) { return std::max(1.0, s.output.mean - 1); }

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
  const StepParts parts = step_of(times, s, 0, own / steps);
  return parts.total() * steps + parts.passing;
}

Seconds prompt_turn(const StepTimes& times, const ServingSpec& s) {
  const double own = prefilled(s);
  if (own <= 0) return Seconds(0);
  // As many prompts as stages, so that each has one.
  return step_of(times, s, 0, own * times.stages()).total() / times.stages();
}

SteadyState steady_state(const StepTimes& times, const ServingSpec& s, const ServingMemory& memory,
                         double in_flight) {
  SteadyState state;
  const double most = running_at_most(s, memory, in_flight);
  const double steps = decodes_of(s);
  const bool arriving = s.arrival_rate > 0;
  state.prompt = prompt_time(times, s);
  const Cycle cycle = cycle_of({times, s, most, steps, prefilled(s), arriving});
  state.tpot = cycle.next;
  const Seconds inside = cycle.whole, outside = s.engine.constants.request;
  state.requests_per_s = std::min(most / inside.value, in_flight / (inside + outside).value);
  state.running = state.requests_per_s * inside.value;
  state.output_per_s = state.requests_per_s * s.output.mean;
  const Seconds wait = arriving ? cycle.wait : Seconds(0);
  state.e2e = Seconds(in_flight / state.requests_per_s) + wait;
  state.ttft = max(cycle.first + wait + outside, state.e2e - steps * state.tpot);
  return state;
}

SteadyState state_at(const StepTimes& times, const ServingSpec& s, const ServingMemory& memory,
                     double rate) {
  double low = 1e-3, high = static_cast<double>(s.limits.max_num_seqs) +
                            rate * s.engine.constants.request.value;
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    (steady_state(times, s, memory, middle).requests_per_s < rate ? low : high) = middle;
  }
  return steady_state(times, s, memory, high);
}

double overloaded_rate(const StepTimes& times, const ServingSpec& s, const ServingMemory& memory) {
  const double held = requests_held(memory, s);
  const double n = running_at_most(s, memory, std::max(1.0, held));
  return n / cycle_of({times, s, n, decodes_of(s), prefilled(s), false}).whole.value;
}

double turning_batch(const StepTimes& times, const ServingSpec& s) {
  const auto turned = [&](double n) {
    const StepParts parts = times.of(decode_load(s, n));
    return parts.arithmetic > parts.reading;
  };
  // From the top: with experts few rows of each are bound by arithmetic too, and more are not.
  double low = 65'536;
  if (!turned(low)) return 0;
  while (low >= 1 && turned(low)) low /= 2;
  double high = 2 * low;
  if (low < 1) return 1;
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (turned(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace costmodel
