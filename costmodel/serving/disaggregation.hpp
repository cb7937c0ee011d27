// Prompts on devices of their own, whose keys and values then travel to those that decode (Zhong et
// al. 2024, DistServe, arXiv:2401.09670; Patel et al. 2024, Splitwise, arXiv:2311.18677). Each pool
// is a number of instances with sizes of its own; the slower pool bounds the rate.
#pragma once

#include "costmodel/serving/served_load.hpp"
#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/serving_spec.hpp"
#include "costmodel/serving/steady_state.hpp"
#include "costmodel/serving/step_time.hpp"

namespace costmodel {

// Instances that prefill one prompt after the other.
struct PromptPool {
  ServingSizes sizes;
  bool fits = false;  // weights and one prompt
  Seconds prompt;     // one alone
  Seconds turn;       // between two, where each stage has one
  Bytes sent;         // its keys and values, from all devices of an instance
  Seconds sending;    // all of them at the same time, beside the next prompt
  double rate = 0;    // prompts a second of all instances
};

// Instances that decode.
struct TokenPool {
  ServingSizes sizes;
  ServingMemory memory;
  bool fits = false;  // weights and one request
  SteadyState state;  // of an instance
  Seconds receiving;  // of a prompt's keys and values
  double rate = 0;    // requests a second of all instances
};

// `times` are of the same sizes and serving.
PromptPool prompt_pool(const ServingScenario& scenario, const ServingSizes& sizes,
                       const StepTimes& times);
TokenPool token_pool(const ServingScenario& scenario, const ServingSizes& sizes,
                     const StepTimes& times);

// How prompts come to those that decode: their keys and values in the slower of sending and
// receiving.
inline Seconds transfer_of(const PromptPool& prompts, const TokenPool& tokens) {
  return max(prompts.sending, tokens.receiving);
}
WayIn way_in(const PromptPool& prompts, const TokenPool& tokens);

// What the two pools do together, in closed form.
struct PooledRates {
  double capacity = 0;  // requests a second at most
  double rate = 0;      // of the load; of an open one that exceeds the capacity, the capacity
  bool saturated = false;
  Seconds ttft, tpot, e2e;
};

// Of a load that keeps C requests in flight, Little's law: the rate is at most C over the time of a
// request, and what of C does not decode waits for its first token. Of requests that
// come all at once the last prompt ends after all of them, and decodes then. Of an open load a
// prompt waits as in M/D/1 (Pollaczek and Khinchine): ρ / (2 (1 - ρ)) of a turn.
PooledRates pooled_rates(const ServingSpec& serving, const PromptPool& prompts,
                         const TokenPool& tokens);

}  // namespace costmodel
