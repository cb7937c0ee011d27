// From a scenario of serving to what the ranks of `shardplan run` serve: one batch of prompts of
// one length, from the first prompt to the last token.
#pragma once

#include <cstdint>

#include "costmodel/config/value.hpp"
#include "costmodel/serving/serving_spec.hpp"
#include "runtime/serving/served_rank.hpp"

namespace runtime {

// `root`: the scenario's tree, for the places of what is refused. Throws ConfigError for what the
// runtime cannot execute: a plan to be searched, experts, latent attention, quantised weights,
// arrivals, lengths that differ, prompts that may not be cut, a batch that no cache holds.
ServedJob served_job(const costmodel::Value& root, const costmodel::ServingScenario& scenario,
                     std::uint64_t seed, std::size_t memory_limit);

}  // namespace runtime
