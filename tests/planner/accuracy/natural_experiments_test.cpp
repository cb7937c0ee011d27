// Pairs of published runs that differ in a few keys of their recipe alone: the best evidence for
// the effect of those keys.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace natural_experiments_test {

using namespace planner;

namespace {

struct Pair {
  const char *before, *after;
  const char* changed;
};

constexpr std::array pairs{
    Pair{"mbridge-ep-overlap-off-qwen3-30b-a3b-16xh100-bf16",
         "mbridge-ep-overlap-on-qwen3-30b-a3b-16xh100-bf16",
         "the exchange beside another micro-batch's computation"},
    Pair{"mbridge-26.04.01-pretrain-qwen3-30b-a3b-8xgb200-mxfp8",
         "mbridge-26.06-pretrain-qwen3-30b-a3b-8xgb200-mxfp8",
         "a graph of the iteration, overlap, fused grouped MLP, fp8 attention"},
    Pair{"mbridge-26.04.01-pretrain-qwen3-235b-a22b-256xgb300-mxfp8",
         "mbridge-26.06-pretrain-qwen3-235b-a22b-256xgb300-mxfp8", "the same"},
    Pair{"mbridge-26.04.01-pretrain-deepseekv3-256xgb300-mxfp8",
         "mbridge-26.06-pretrain-deepseekv3-256xgb300-mxfp8",
         "the same, micro-batches of 1, nothing recomputed"},
    Pair{"bridge-skill-moonlight-8xh100-none", "bridge-skill-moonlight-8xh100-core_attn",
         "attention recomputed, where the host sets the pace"},
    Pair{"bridge-skill-moonlight-8xh100-none", "bridge-skill-moonlight-8xh100-layernorm-moe_act",
         "norms and the experts' activation recomputed, where the host sets the pace"},
};

std::map<std::string, ValidationRow> rows() {
  const std::string root = SHARDPLAN_SOURCE_DIR "/configs";
  std::map<std::string, ValidationRow> by_id;
  for (const auto& row :
       validate({root + "/evidence/moe-qwen3.yaml", root + "/evidence/moe-deepseek-v3.yaml",
                 root + "/evidence/bridge-skills.yaml"},
                {{root}})) {
    if (row.predicted_time()) by_id.emplace(row.id, row);
  }
  return by_id;
}

}  // namespace

TEST_CASE("what a change of recipe alone did is predicted: its sign, and its size within a third") {
  const auto runs = rows();
  for (const Pair& pair : pairs) {
    CAPTURE(std::string(pair.changed));
    const auto& before = runs.at(pair.before);
    const auto& after = runs.at(pair.after);
    const double measured = after.measured / before.measured - 1;
    const double predicted = after.predicted / before.predicted - 1;
    CHECK(measured * predicted > 0);
    CHECK_MESSAGE(std::abs(predicted - measured) <= std::abs(measured) / 3, "measured ",
                  100 * measured, " %, predicted ", 100 * predicted, " %");
  }
}

TEST_CASE(
    "more virtual stages shorten a pipeline of experts; fp8 without graphs is slower than bf16") {
  const auto runs = rows();
  const auto predicted = [&](const std::string& id) { return runs.at("mbridge-" + id).predicted; };
  CHECK(predicted("26.04-pretrain-qwen3-235b-a22b-256xgb300-mxfp8") <
        predicted("26.02.01-pretrain-qwen3-235b-a22b-256xgb300-mxfp8"));
  CHECK(predicted("26.06-pretrain-qwen3-30b-a3b-16xh100-fp8") >
        predicted("ep-overlap-off-qwen3-30b-a3b-16xh100-bf16"));
}

}  // namespace natural_experiments_test
