// Reports of serving for people: text for a terminal, or Markdown.
#pragma once

#include <string>
#include <vector>

#include "costmodel/serving/engine.hpp"
#include "planner/diagnosis/load_curve.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/search/serving_search.hpp"

namespace planner {

// "tp 2 · pp 1 · ep 1 · dp 4".
std::string to_string(const costmodel::ServingSizes& sizes);
// The same of a scenario's plan, both pools where prompts are apart.
std::string plan_text(const costmodel::ServingScenario& scenario,
                      const costmodel::ServingSizes& sizes);

// "155.2 ms"; "endless" of a latency that grows with every request.
std::string latency_text(double seconds);

std::string serving_heading(const costmodel::ServingScenario& scenario, const ReportStyle& style);

// Throughput, latencies with their intervals, memory, price, where a token's time goes, the curve
// of latency over load, and why.
std::string serving_report(const costmodel::ServingScenario& scenario,
                           const costmodel::ServingEstimate& estimate,
                           const costmodel::ServingFit& fit, const ReportStyle& style);

struct NamedPart {
  const char* name;
  costmodel::Seconds time;
};
std::vector<NamedPart> token_parts(const costmodel::ServingEstimate& estimate);

// The parts of a token's time, their shares, and what of it waits for prompts of others.
Table token_table(const costmodel::ServingEstimate& estimate);
Table load_table(const std::vector<LoadPoint>& curve);

// What bounds the time of a token, the batch at which that turns, what the cache holds, what tp
// brings.
std::vector<std::string> serving_reasons(const costmodel::ServingScenario& scenario,
                                         const costmodel::ServingEstimate& estimate);

// "No plan keeps what is asked", or that nothing fits.
const char* unanswered_title(const ServingSearch& found);

// The best plan's report, the ranking, the front, what was searched.
std::string serving_search_report(const costmodel::ServingScenario& scenario,
                                  const ServingSearch& found, const costmodel::ServingFit& fit,
                                  const ReportStyle& style);
Table serving_ranking(const std::vector<ServingCandidate>& plans);
// The same for programs: plain numbers in base units.
Table serving_ranking_rows(const std::vector<ServingCandidate>& plans);

// What a search did, what it proved, and what the best split of replicas would do.
std::vector<std::string> search_sentences(const costmodel::ServingScenario& scenario,
                                          const ServingSearch& found);

}  // namespace planner
