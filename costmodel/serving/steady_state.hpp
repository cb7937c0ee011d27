// A replica under a load that keeps a number of requests in flight, in closed form: what the
// simulation of requests comes to on average. It bounds and ranks plans in a search.
#pragma once

#include "costmodel/serving/serving_memory.hpp"
#include "costmodel/serving/step_time.hpp"

namespace costmodel {

struct SteadyState {
  double running = 0;  // requests that run at the same time
  Seconds ttft;        // from a client's side: what of e2e is not decoding
  Seconds tpot;
  Seconds e2e;                                  // by Little's law: in flight / requests a second
  double requests_per_s = 0, output_per_s = 0;  // of a replica
  Seconds prompt;                               // of one prompt alone
};

// `in_flight` requests of the mean lengths in a replica, without end; those that neither
// max_num_seqs nor the cache has room for wait. Chunked: a prompt takes the room that decoding
// leaves in its steps, which are longer by it for the others. Else prompts interrupt the decoding
// of all others. Of an open load a first token also waits for the step that runs and for prompts
// before it. Each request is for a while outside the steps too (EngineConstants::request). Throws
// nothing; the memory must fit one request.
SteadyState steady_state(const StepTimes& times, const ServingSpec& serving,
                         const ServingMemory& memory, double in_flight);

// Of an open load as many are in flight as keep up with it (Little's law), found by halving.
SteadyState state_at(const StepTimes& times, const ServingSpec& serving,
                     const ServingMemory& memory, double rate);

// Requests a second that a replica answers while more wait than run, whatever the scenario's load.
double overloaded_rate(const StepTimes& times, const ServingSpec& serving,
                       const ServingMemory& memory);

// The load of a step that decodes `running` sequences in the middle of their answers.
StepLoad decode_load(const ServingSpec& serving, double running);

// Time of one prompt alone, through all stages; and the time between two where every stage is
// filled.
Seconds prompt_time(const StepTimes& times, const ServingSpec& serving);
Seconds prompt_turn(const StepTimes& times, const ServingSpec& serving);

// The number of decoding sequences from which on arithmetic takes longer than reading weights and
// cache; 0: none up to 65,536, for each sequence reads its own keys and values.
double turning_batch(const StepTimes& times, const ServingSpec& serving);

}  // namespace costmodel
