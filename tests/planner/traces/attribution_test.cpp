#include "planner/traces/attribution.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/traced_job.hpp"

namespace attribution_test {

using planner::Attribution;
using planner::no_operator;
using planner::Trace;
using planner::TracedPart;

namespace {

// Of a kernel that an operator with these sizes launched, within another.
Attribution of(const char* kernel, const char* op, const char* sizes = "",
               const char* around = "ProfilerStep#0") {
  static const costmodel::Scenario scenario = scenarios::read(traced_job::small);
  Trace trace;
  trace.operators.push_back({trace.texts.of(around), trace.texts.of(""), 0, no_operator, 0, 100});
  trace.operators.push_back({trace.texts.of(op), trace.texts.of(sizes), 0, 0, 10, 10});
  trace.kernels.push_back({trace.texts.of(kernel), 1, 0, 20, 5, 15, 0});
  return planner::Attributor(scenario.model, scenario.training, 4096)
      .of(trace, trace.kernels.front());
}

}  // namespace

TEST_CASE("products are those whose sides are the model's") {
  CHECK(of("nvjet", "aten::mm", "[[4096,2048][2048,8192]]").part == TracedPart::mlp_products);
  // Tokens that are as many as the MLP is wide are no side of the weight.
  CHECK(of("nvjet", "aten::mm", "[[512,4096][4096,2048]]").part == TracedPart::attention_products);
  CHECK(of("nvjet", "aten::mm", "[[4096,2048][2048,512]]").part == TracedPart::attention_products);
  CHECK(of("nvjet", "aten::mm", "[[4096,2048][2048,32000]]").part == TracedPart::logits_products);
  CHECK(of("nvjet", "aten::mm", "[[7,9][9,11]]").part == TracedPart::unknown);
  CHECK(of("nvjet", "te::linear", "[[7,9][9,11]]").part == TracedPart::other_products);
  CHECK(of("nvjet", "aten::mm", "[[4096,2048][2048,16384]]").part == TracedPart::mlp_products);
  CHECK(of("nvjet", "aten::mm", "[[4096,2048][2048,8192]]", "MmBackward0").backward);
}

TEST_CASE(
    "where every layer has experts no product is of a dense MLP; rows of another micro-batch") {
  // Hidden, MLP and heads are all as wide.
  const costmodel::Scenario s = scenarios::read(
      "model: {kind: moe, layers: 2, hidden: 2048, heads: 16, experts: 64, top_k: 8, ffn_hidden: "
      "2048, expert_ffn_hidden: 1024, vocab: 50304}\ncluster: {base: dgx-h100, devices: "
      "1}\ntraining: "
      "{global_batch: 1, sequence: 4096, stack: torchtitan}\nplan: {micro_batch: 1}\n");
  Trace trace;
  trace.operators.push_back({trace.texts.of("aten::mm"), trace.texts.of("[[4096,2048][2048,2048]]"),
                             0, no_operator, 0, 100});
  trace.kernels.push_back({trace.texts.of("nvjet"), 0, 0, 20, 5, 15, 0});
  const auto of_tokens = [&](std::int64_t tokens) {
    return planner::Attributor(s.model, s.training, tokens).of(trace, trace.kernels.front());
  };
  CHECK(of_tokens(4096).part == TracedPart::attention_products);
  CHECK_FALSE(of_tokens(4096).other_rows);
  CHECK(of_tokens(8192).other_rows);
}

TEST_CASE("element-wise kernels are by what is around them, else by their sizes") {
  constexpr const char* kernel = "void at::native::vectorized_elementwise_kernel<4>";
  CHECK(of(kernel, "aten::copy_", "[[17]]", "FSDP::pre_forward").part == TracedPart::shards);
  CHECK(of(kernel, "aten::_fused_adamw_").part == TracedPart::optimizer);
  CHECK(of(kernel, "aten::mul", "[[1,4096,8192]]").part == TracedPart::activation);
  CHECK(of(kernel, "aten::mul", "[[1,4096,16,64]]").part == TracedPart::rotary);
  CHECK(of(kernel, "aten::add", "[[1,4096,2048][1,4096,2048]]").part == TracedPart::residual);
  CHECK(of(kernel, "aten::copy_", "[[4096,32000]]").part == TracedPart::loss);
  CHECK(of(kernel, "aten::frobnicate", "[[3]]").part == TracedPart::unknown);
}

TEST_CASE(
    "what a compiler fused is by the names of what it fused, without the host by the kernel's") {
  CHECK(of("triton_red_fused__fused_rms_norm_3", "triton_red_fused__fused_rms_norm_3").part ==
        TracedPart::norms);
  CHECK(of("ncclDevKernel_AllGather_RING_LL", "c10d::_allgather_base_").part ==
        TracedPart::communication);
  const costmodel::Scenario scenario = scenarios::read(traced_job::small);
  Trace trace;
  trace.kernels.push_back({trace.texts.of("flash_fwd_kernel"), no_operator, 0, 20, 5, 0, 0});
  CHECK(planner::Attributor(scenario.model, scenario.training, 4096)
            .of(trace, trace.kernels.front())
            .part == TracedPart::attention);
}

TEST_CASE("every row of a predicted list has its part") {
  for (const auto& part : traced_job::predicted().parts) CHECK(part.part != TracedPart::unknown);
}

}  // namespace attribution_test
