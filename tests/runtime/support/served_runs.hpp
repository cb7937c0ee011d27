// Serves small models on threads.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "runtime/run/serve_command.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace served_runs {

// A table that is tied, biases, learned positions, five layers; and grouped heads, gates, rotary
// positions. The vocabularies have to be padded.
inline constexpr const char* gpt =
    "{kind: gpt, layers: 5, hidden: 32, heads: 4, vocab: 200, max_positions: 64, dropout: 0.1}";
inline constexpr const char* llama =
    "{kind: llama, layers: 4, hidden: 32, heads: 8, kv_heads: 4, ffn_hidden: 96, vocab: 300, "
    "tie_embeddings: false}";

inline runtime::ServeRequest request(
    const std::string& model, const std::string& plan,
    const std::string& serving = "input_tokens: 21, output_tokens: 14, requests: 5",
    const std::string& formats = "weights: fp32, kv_cache: fp32") {
  runtime::ServeRequest request;
  request.root = costmodel::parse_yaml(
      fmt::format("workload: inference\nmodel: {}\ncluster: {{base: laptop-cpu, devices: 8}}\n"
                  "serving: {{stack: shardplan-cpu, {}, {}}}\nplan: {}\n",
                  model, formats, serving, plan),
      "served.yaml");
  request.scenario = costmodel::read_serving(request.root, "served", fixtures::configs());
  request.iterations = 1;
  return request;
}

inline runtime::ServeResult served(const std::string& model, const std::string& plan) {
  return serve_plan(request(model, plan)).value();
}

// Every byte that is predicted is the one that was measured.
inline void check_exact(const runtime::ServeResult& r) {
  for (const runtime::Compared& row : compare(r)) {
    if (row.unit != runtime::Unit::bytes) continue;
    INFO(row.title);
    CHECK(row.predicted == row.measured);
  }
}

}  // namespace served_runs
