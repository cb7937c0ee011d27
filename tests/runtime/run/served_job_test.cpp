// What of a scenario of serving the runtime refuses, with place and remedy.
#include "runtime/run/served_job.hpp"

#include <doctest/doctest.h>

#include <string>

#include "tests/runtime/support/served_runs.hpp"

namespace served_job_test {

using fixtures::config_error;
using fixtures::contains;

namespace {

constexpr const char* usual = "input_tokens: 21, output_tokens: 14, requests: 6";
constexpr const char* plain = "{tp: 1, pp: 1, dp: 1}";

std::string refusal(const std::string& plan, const std::string& serving = usual,
                    const std::string& model = served_runs::llama,
                    const std::string& formats = "weights: fp32, kv_cache: fp32") {
  return config_error([&] {
    const auto r = served_runs::request(model, plan, serving, formats);
    runtime::served_job(r.root, r.scenario, 1, 0);
  });
}

}  // namespace

TEST_CASE("a job has the batch of one replica, and prompts that do not depend on the plan") {
  const auto of = [](const char* plan) {
    const auto r = served_runs::request(served_runs::gpt, plan, usual);
    return runtime::served_job(r.root, r.scenario, 3, 0);
  };
  const runtime::ServedJob one = of(plain), cut = of("{tp: 2, pp: 2, dp: 2}");
  CHECK(one.batch.requests == 6);
  CHECK(one.prompts.size() == 6 * 21);
  CHECK(cut.batch.requests == 3);
  CHECK(cut.batch.parts == 2);
  CHECK(cut.prompts == one.prompts);
  CHECK(one.model.dropout == 0);
  CHECK(cut.block_size == 16);
}

TEST_CASE("what the runtime does not serve is refused") {
  struct Refused {
    std::string error, reason, remedy;
  };
  const std::string experts = "{base: mixtral-8x7b, layers: 2}";
  const std::string latent = "{base: deepseek-v2-lite, layers: 2}";
  const std::string gated =
      "{kind: llama, layers: 2, hidden: 32, heads: 4, ffn_hidden: 98, vocab: 256}";
  const Refused all[]{
      {refusal("auto"), "plan is left open", "shardplan plan SCENARIO --format yaml"},
      {refusal("{disaggregation: {prefill: {tp: 1}, decode: {tp: 1}}}"), "on the same ranks",
       "leave plan.disaggregation out"},
      {refusal(plain, usual, experts), "no experts", "take a gpt or llama model"},
      {refusal(plain, usual, latent), "latent attention", "take a gpt or llama model"},
      {refusal(plain, usual, "{base: bloom-560m, layers: 2}"), "no ALiBi", "rotary or learned"},
      {refusal("{tp: 8, dp: 1}"), "tp 8 does not divide the 4 key/value heads", "choose a tp"},
      {refusal("{tp: 4, dp: 1}", usual, gated), "MLPs of 98 columns", "choose sizes that divide"},
      {refusal(plain, usual, served_runs::llama, "weights: int8"), "16-bit products",
       "write weights: fp32"},
      {refusal(plain, usual, served_runs::llama, "weights: fp32, kv_cache: fp8"),
       "no quantised cache", "write kv_cache: fp32"},
      {refusal(plain, "input_tokens: 21, output_tokens: 14, arrival_rate: 2"), "one batch",
       "write requests: 8"},
      {refusal(plain, "input_tokens: {mean: 21, p95: 40}, output_tokens: 14, requests: 4"),
       "of one length", "write input_tokens: 21"},
      {refusal(plain, "input_tokens: 21, output_tokens: {min: 3, max: 9}, requests: 4"),
       "of one length", "write output_tokens: 6"},
      {refusal(plain, "input_tokens: 20.5, output_tokens: 4, requests: 4"), "no whole number",
       "whole number"},
      {refusal(plain, std::string(usual) + ", prefix_hit_share: 0.5"), "no prefixes", "leave"},
      {refusal(plain, std::string(usual) + ", decode_only: true"), "prefills", "leave"},
      {refusal("{tp: 1, dp: 4}"), "6 requests are not shared evenly by 4 replicas",
       "a multiple of 4"},
      {refusal(plain, std::string(usual) + ", max_num_seqs: 4"), "6 requests exceed the 4",
       "max_num_seqs"},
      {refusal(plain, std::string(usual) + ", max_num_batched_tokens: 20"),
       "prompts of 21 tokens exceed a pass of 20", "set chunked_prefill: true"},
      {refusal(plain, "input_tokens: 8000, output_tokens: 9000000, requests: 6"),
       "blocks of a replica's cache, which has", "fewer or shorter requests"},
  };
  for (const Refused& one : all) {
    CAPTURE(one.error);
    CHECK(contains(one.error, "served.yaml:"));
    CHECK(contains(one.error, one.reason));
    CHECK(contains(one.error, one.remedy));
  }
  CHECK(refusal(plain).empty());
}

TEST_CASE("a refusal names the line and column of its key") {
  CHECK(contains(refusal(plain, std::string(usual) + ", max_num_batched_tokens: 20"),
                 "served.yaml:4:"));
  CHECK(contains(refusal("{tp: 8, dp: 1}"), "served.yaml:5:"));
}

}  // namespace served_job_test
