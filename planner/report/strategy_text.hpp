// The result of `plan --strategy` in sentences, and how far a search came that was stopped.
#pragma once

#include <string>
#include <vector>

#include "planner/search/strategy.hpp"

namespace planner {

// One sentence per line: the best plan with even stages and with any layout, where and why they
// differ, what was searched and what is proved. Empty when only the grid was searched.
std::vector<std::string> strategy_sentences(const Strategies& strategies,
                                            const costmodel::StackSpec& stack);

// What a search over even stages leaves out and another strategy tries; "" where there is nothing.
std::string left_out(const Strategies& all, const costmodel::Scenario& scenario);

// What of the space is not proved; "" where all is.
std::string proved_but(const Strategies& all);

// What a key that is searched only with `auto` gains; "" where nothing.
std::string unasked_gain(const UnaskedKey& unasked, const Strategies& strategies,
                         const costmodel::Scenario& scenario);

// Of the other such keys, that they gain nothing or were not looked at; "" where there are none.
std::string unasked_keys_sentence(const Strategies& strategies,
                                  const costmodel::Scenario& scenario);

// The part of memory that plans leave free; "" where they may take all.
std::string margin_sentence(const costmodel::Scenario& scenario);

// What a signal ended early: "interrupted by SIGINT: best of 12 configurations looked at so far;
// nothing is proved".
std::string interruption(const Strategies& strategies);
std::string interruption(const MeshSearch& found);

// Why a search that was stopped has no plan.
std::string unfinished(const Strategies& strategies);

// What the fastest plan would take where a simpler one is chosen; "" where it is the fastest.
std::string fastest_sentence(const costmodel::Estimate& chosen,
                             const std::optional<costmodel::Estimate>& fastest,
                             const costmodel::Scenario& scenario);

// What of the chosen plan no published run has had, and the best plan without it; "" where all of
// it has been.
std::string measured_sentence(const Strategies& strategies, const costmodel::Scenario& scenario);

}  // namespace planner
