// Recipes of mixtures of experts: what each key changes in time and memory, against counts by hand
// for DeepSeek-V3 (arXiv:2412.19437) on GB300.
#include "costmodel/plan/expert_recipe.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace expert_recipe_test {

using namespace costmodel;

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

// Two stages of eight chunks, as NVIDIA's recipe for 256 GB300 has them.
std::string deepseek(const std::string& training, const std::string& plan) {
  return fmt::format(
      "model: {{base: deepseek-v3, mtp_layers: 1}}\n"
      "cluster: {{base: dgx-gb300, devices: 256}}\n"
      "training: {{global_batch: 4096, sequence: 4096, precision: mxfp8, stack: megatron-bridge, "
      "gradient_precision: bf16{}}}\n"
      "plan: {{tp: 1, pp: 2, dp: 128, ep: 32, vpp: 8, zero: 1, stage_layers: [4, 4, 4, 4, 4, 4, 4, "
      "4, 4, 4, 4, 4, 4, 4, 4, 1]{}}}\n",
      training, plan);
}

// Qwen3-30B on two nodes of H100, all of a node's neighbours among the experts' ranks.
std::string qwen(const std::string& training, const std::string& plan) {
  return fmt::format(
      "model: qwen3-30b-a3b\ncluster: {{base: dgx-h100, devices: 16}}\n"
      "training: {{global_batch: 1024, sequence: 4096, stack: megatron-bridge{}}}\n"
      "plan: {{dp: 16, ep: 16, micro_batch: 1, zero: 1{}}}\n",
      training, plan);
}

Estimate estimated(const std::string& yaml) {
  const Scenario s = scenarios::read(yaml);
  return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
}

// Bytes a token that a layer with experts keeps for backward.
double kept(const std::string& yaml) {
  const Scenario s = scenarios::read(yaml);
  const ParallelPlan plan = resolve_plan(s);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const LayerCost& layer = evaluator.layer(LayerKind::moe, plan, region_of(plan.recompute));
  return layer.footprint.kept.value / static_cast<double>(plan.micro_batch * s.training.sequence);
}

double off(double ours, double hand) { return std::abs(ours / hand - 1); }

}  // namespace

TEST_CASE("what a layer keeps for backward, module by module") {
  const auto by = [](const std::string& training, const std::string& recompute) {
    return kept(deepseek(training, ", recompute: " + recompute));
  };
  const double all = by("", "none");
  // Two norm inputs, their fp8 copies, compressed and full q, k, v, attention's result, the
  // router's input, the shared expert, and of eight routed copies fc1's input, its output and fc2's
  // input: 406,944 bytes (block scales of the copies, 1 %, are left out here).
  CHECK(off(all, 406'944) <= 0.02);
  // q, k and v in bf16 (128 heads of 192, 192 and 128) and the inputs of their projections.
  CHECK(off(all - by("", "{modules: [mla_up_proj]}"), 131'072 + 2'048) <= 0.001);
  // The fp8 copy of the activation, which fc2 reads.
  CHECK(off(all - by("", "{modules: [moe_act]}"), 8 * 2048) <= 0.001);
  // The router's bf16 input and the attention norm's result: products keep their own fp8 copies.
  CHECK(all - by("", "{modules: [layernorm]}") >= 7168 * 2);
  CHECK(off(all - by(", attention_precision: fp8", "none"), 65'536 + 16'384) <= 0.001);
  CHECK(by("", "{modules: [mla_up_proj, moe_act]}") ==
        doctest::Approx(by("", "{modules: [mla_up_proj]}") - 8 * 2048));
  // Routed and shared experts keep their inputs alone.
  CHECK(by("", "{modules: [moe]}") < 0.62 * all);
  CHECK(by("", "{modules: [shared_experts]}") < all);
  CHECK(by("", "{modules: [shared_experts]}") > by("", "{modules: [moe]}"));
  CHECK(by("", "{modules: [core_attn]}") == by("", "selective"));
  CHECK(by("", "full") == 7168 * 2);
}

TEST_CASE("recomputed modules take the time of their forward") {
  const auto of = [](const std::string& recompute) {
    return estimated(deepseek("", ", micro_batch: 2, recompute: " + recompute));
  };
  const double none = of("none").iteration.value;
  const double latent = of("{modules: [mla_up_proj]}").iteration.value;
  CHECK(latent > 1.02 * none);  // 109 MFLOP a token and layer again, of 1.25 GFLOP
  CHECK(latent < 1.06 * none);
  const double full = of("full").iteration.value;
  CHECK(full > 1.15 * none);
  CHECK(of("{modules: [moe]}").iteration.value < full);
}

TEST_CASE("memory of DeepSeek-V3 on 256 GB300 by hand") {
  const auto e = estimated(
      deepseek(", moment_precision: bf16, attention_precision: fp8, parameter_gather_precision: "
               "mxfp8, overlap: {cuda_graph: [full_iteration]}",
               ", micro_batch: 1, dispatcher: hybridep, expert_overlap: true"));
  const StageMemory& first = e.memory[0];
  CHECK(off(first.weights.value, 37.7 * GiB) <= 0.01);
  CHECK(off(first.gradients.value, 36.6 * GiB) <= 0.01);
  CHECK(off(first.optimizer.value, 19.6 * GiB) <= 0.01);
  CHECK(off(first.activations.value, 89.8 * GiB) <= 0.06);
  CHECK(off(e.peak.value, 184 * GiB + 6 * GiB) <= 0.05);
  const auto more = estimated(
      deepseek(", moment_precision: bf16, parameter_gather_precision: mxfp8",
               ", micro_batch: 2, dispatcher: hybridep, recompute: {modules: [mla_up_proj]}"));
  CHECK(off(more.memory[0].activations.value, 142 * GiB) <= 0.06);
}

TEST_CASE("moments in bf16 save four bytes a parameter, gradients in bf16 two") {
  const auto own = [](const std::string& training) {
    const Scenario s = scenarios::read(deepseek(training, ""));
    return optimizer_bytes_per_parameter(s.training);
  };
  CHECK(own("") == 12);
  CHECK(own(", moment_precision: bf16") == 8);
}

TEST_CASE("mxfp8 weights are kept twice and gathered in bf16, fp8 weights gathered in one byte") {
  const auto of = [](const std::string& precision) {
    return scenarios::read(deepseek(", parameter_gather_precision: " + precision, "")).training;
  };
  CHECK(weight_bytes_per_parameter(of("mxfp8")) == 2.0625);
  CHECK(gather_bytes_per_parameter(of("mxfp8")) == 2);
  CHECK(weight_bytes_per_parameter(of("fp8")) == 2);
  CHECK(gather_bytes_per_parameter(of("fp8")) == 1);
  CHECK(weight_bytes_per_parameter(of("bf16")) == 2);
}

TEST_CASE("weights that are kept narrow are cast with the step, and in no pass") {
  const auto scenario = [](const std::string& precision) {
    return deepseek(
        ", overlap: {cuda_graph: [full_iteration]}, parameter_gather_precision: " + precision,
        ", micro_batch: 1, recompute: full");
  };
  const auto layer = [&](const std::string& precision) {
    const Scenario s = scenarios::read(scenario(precision));
    const ParallelPlan plan = resolve_plan(s);
    Evaluator evaluator(s.model, s.cluster, s.training);
    return evaluator.layer(LayerKind::moe, plan, region_of(plan.recompute));
  };
  const LayerCost wide = layer("bf16"), kept = layer("mxfp8");
  CHECK(wide.weight_casts.value == 0);
  // All that a pass no longer casts, and the starts of its kernels.
  const Seconds less = wide.forward.compute - kept.forward.compute;
  CHECK(less.value > 0.8 * kept.weight_casts.value);
  CHECK(less < kept.weight_casts);
  CHECK((wide.recompute.compute - kept.recompute.compute).value == doctest::Approx(less.value));
  CHECK(kept.backward.compute == wide.backward.compute);
  const Estimate before = estimated(scenario("bf16")), after = estimated(scenario("mxfp8"));
  CHECK(after.iteration < before.iteration);
  CHECK(after.breakdown.optimizer > before.breakdown.optimizer);
}

TEST_CASE("one copy a node in place of one a chosen expert takes a quarter of the outer network") {
  const auto all = estimated(qwen("", ", dispatcher: alltoall"));
  for (const char* kernel : {"deepep", "hybridep"}) {
    const auto once = estimated(qwen("", fmt::format(", dispatcher: {}", kernel)));
    CHECK(once.breakdown.ep_comm.value < 0.4 * all.breakdown.ep_comm.value);
    CHECK(once.traffic.all_to_all < all.traffic.all_to_all);
    CHECK(once.iteration < all.iteration);
  }
  const auto gathered = estimated(qwen("", ", dispatcher: allgather"));
  CHECK(gathered.traffic.all_to_all.value == 0);
  CHECK(gathered.traffic.all_gather > all.traffic.all_gather);
}

TEST_CASE("an exchange beside another micro-batch's computation is hidden, but for the warm-up") {
  const std::string graph = ", overlap: {cuda_graph: [full_iteration]}";
  const auto apart = estimated(qwen(graph, ", dispatcher: hybridep"));
  const auto beside = estimated(qwen(graph, ", dispatcher: hybridep, expert_overlap: true"));
  CHECK(off(beside.breakdown.compute.value, apart.breakdown.compute.value) < 1e-6);
  CHECK(beside.breakdown.ep_comm.value < 0.2 * apart.breakdown.ep_comm.value);
  CHECK(beside.breakdown.ep_comm.value > 0.0156 * apart.breakdown.ep_comm.value);  // 1 of m = 64
  // The host that launches both hides a part.
  const auto eager = estimated(qwen("", ", dispatcher: hybridep, expert_overlap: true"));
  const auto alone = estimated(qwen("", ", dispatcher: hybridep"));
  CHECK(eager.breakdown.ep_comm.value > 0.35 * alone.breakdown.ep_comm.value);
  CHECK(eager.iteration < alone.iteration);
  // Kernels that take multiprocessors slow what runs beside them.
  const auto taking = estimated(
      qwen(graph, ", dispatcher: hybridep, expert_overlap: true, dispatcher_multiprocessors: 32"));
  CHECK(taking.breakdown.ep_comm > beside.breakdown.ep_comm);
}

TEST_CASE("shared experts that compute beside the exchange hide as much of it") {
  const std::string plan = ", micro_batch: 1, dispatcher: hybridep";
  // Clocks that rise in the bubble would shorten what hides nothing, and a host that sets the pace
  // takes up what is hidden.
  const std::string graph = ", overlap: {cuda_graph: [full_iteration]}";
  const auto steady = [](std::string text) {
    const std::string devices = "devices: 256";
    return text.replace(text.find(devices), devices.size(),
                        devices + ", device: {base: gb300, power: {idle_boost: 0}}");
  };
  const auto apart = estimated(steady(deepseek(graph, plan)));
  const auto beside = estimated(steady(deepseek(graph, plan + ", shared_expert_overlap: true")));
  CHECK(beside.iteration < apart.iteration);
  CHECK(beside.breakdown.ep_comm < apart.breakdown.ep_comm);
  CHECK(beside.breakdown.compute.value == doctest::Approx(apart.breakdown.compute.value));
}

TEST_CASE("every local expert adds its start; one kernel for all experts adds less") {
  const auto compute = [](const std::string& training, int ep) {
    return estimated(fmt::format("model: qwen3-30b-a3b\ncluster: {{base: dgx-gb200, devices: 8}}\n"
                                 "training: {{global_batch: 64, sequence: 4096, stack: "
                                 "megatron-bridge{}}}\nplan: {{dp: 8, ep: {}, micro_batch: 4}}\n",
                                 training, ep))
        .breakdown.compute.value;
  };
  // 16 experts more on a rank, in each of three products a grouped product, two of these a layer.
  const double starts = 16 * 6 * 48 * 2 * 15e-6;
  const double more = compute(", precision: bf16", 4) - compute(", precision: bf16", 8);
  CHECK(more > 0.9 * starts);
  const std::string narrow = ", precision: mxfp8, overlap: {cuda_graph: true}";
  CHECK(compute(narrow + ", fused_grouped_mlp: true", 8) < 0.85 * compute(narrow, 8));
}

TEST_CASE("tokens that are dropped or padded give static shapes; a full rank has more rows") {
  const auto time = [](const std::string& training) {
    return estimated(fmt::format("model: qwen3-30b-a3b\ncluster: {{base: dgx-b200, devices: 8}}\n"
                                 "training: {{global_batch: 512, sequence: 4096, precision: mxfp8, "
                                 "stack: megatron-bridge{}}}\nplan: {{dp: 8, ep: 8, dispatcher: "
                                 "alltoall}}\n",
                                 training))
        .iteration.value;
  };
  const double dropless = time("");
  CHECK(time(", capacity_factor: 1.0") < dropless);  // no wait for the number of rows
  CHECK(time(", capacity_factor: 1.5") > time(", capacity_factor: 1.0"));
  CHECK(time(", expert_imbalance: 1.5") > dropless);
  CHECK(time(", expert_imbalance: 1.0") == dropless);
  CHECK(time(", capacity_factor: none") == dropless);
}

TEST_CASE("multi-token prediction adds a layer, a projection and a head to the last stage") {
  const auto of = [](int layers) {
    Scenario s = scenarios::read(deepseek("", ", micro_batch: 1"));
    s.model.mtp_layers = layers;
    return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
  };
  const auto without = of(0), with = of(1);
  // 6 (active weights of the layer + 2 h² + h V) and the layer's attention: 4.1 % of the FLOPs.
  const double more = with.model_flops.value / without.model_flops.value - 1;
  CHECK(more > 0.035);
  CHECK(more < 0.047);
  CHECK(with.stage_forward.front() == without.stage_forward.front());
  CHECK(with.stage_forward.back().value > without.stage_forward.back().value * 1.5);
  CHECK(with.memory[0].weights == without.memory[0].weights);
  CHECK(with.memory[1].weights > without.memory[1].weights);
  CHECK(with.iteration > without.iteration);
}

TEST_CASE("fp8 attention is faster on a device that says by how much") {
  const std::string plan = ", micro_batch: 1";
  const auto wide = estimated(deepseek("", plan));
  const auto narrow = estimated(deepseek(", attention_precision: fp8", plan));
  CHECK(narrow.iteration < wide.iteration);
  CHECK(narrow.peak < wide.peak);
  CHECK(narrow.model_flops == wide.model_flops);
}

TEST_CASE("recipes read back, and what is misspelt is told") {
  const Scenario s = scenarios::read(
      deepseek(", overlap: {cuda_graph: [attn, moe_router]}",
               ", dispatcher: hybridep, dispatcher_multiprocessors: 32, expert_overlap: true, "
               "delayed_weight_gradient: true, recompute: {modules: [mla_up_proj, mlp]}"));
  const ParallelPlan plan = resolve_plan(s);
  CHECK(plan.experts == ExpertRecipe{Dispatcher::hybridep, 32, true, true, false, true});
  CHECK(s.training.overlap.graph_attention);
  CHECK(s.training.overlap.graph_router);
  CHECK_FALSE(s.training.overlap.cuda_graph);
  const std::string text = to_yaml(to_value(plan));
  CHECK(text.find("dispatcher: hybridep") != std::string::npos);
  CHECK(text.find("mla_up_proj") != std::string::npos);
  const auto refused = [](const std::string& training, const std::string& plan_keys) {
    try {
      scenarios::read(deepseek(training, plan_keys));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused("", ", dispatcher: hybridpe").find("did you mean 'hybridep'") != std::string::npos);
  CHECK(refused("", ", recompute: {modules: [mla_up]}").find("mla_up_proj") != std::string::npos);
  CHECK(refused(", overlap: {cuda_graph: [atn]}", "").find("attn") != std::string::npos);
  CHECK(refused("", ", recompute: {modules: []}").find("list of modules") != std::string::npos);
  CHECK(refused("", ", recompute: [full]").find("write none, selective or full;") !=
        std::string::npos);
}

TEST_CASE("DeepEP and HybridEP run on devices that have their kernels, and leave some of it") {
  const auto on = [](const char* cluster, const char* plan) {
    return scenarios::fault_of([&] {
      return scenarios::read(
          fmt::format("model: qwen3-30b-a3b\ncluster: {{base: {}, devices: 16}}\n"
                      "training: {{global_batch: 64, sequence: 4096, stack: megatron-core-2026}}\n"
                      "plan: {{dp: 16, ep: 8, {}}}\n",
                      cluster, plan));
    });
  };
  CHECK(on("mi300x-8x", "dispatcher: alltoall") == "");
  for (const char* name : {"deepep", "hybridep"}) {
    CHECK(on("dgx-h100", fmt::format("dispatcher: {}", name).c_str()) == "");
    CHECK(on("mi300x-8x", fmt::format("dispatcher: {}", name).c_str()) ==
          fmt::format(
              "test.yaml:4:35: {} has no kernels for device mi300x; set dispatcher: alltoall, or "
              "flex_dispatcher of a device that has them",
              name));
  }
  CHECK(on("dgx-h100", "dispatcher: deepep, dispatcher_multiprocessors: 131") == "");
  CHECK(on("dgx-h100", "dispatcher: deepep, dispatcher_multiprocessors: 132") ==
        "test.yaml:4:71: the kernels of deepep take 132 of the 132 multiprocessors of device "
        "h100-sxm5-80gb; leave some for the products: some 32");
}

TEST_CASE("an exchange that overlaps has what Megatron-LM asks of it") {
  const auto fault = [](const char* plan, const char* stack = "megatron-core-2026") {
    return scenarios::fault_of([&] {
      return scenarios::read(
          fmt::format("model: deepseek-v2-lite\ncluster: {{base: dgx-h100, devices: 16}}\n"
                      "training: {{global_batch: 64, sequence: 4096, stack: {}}}\nplan: {{{}}}\n",
                      stack, plan));
    });
  };
  using fixtures::contains;
  CHECK(fault("dp: 16, ep: 8, expert_overlap: true") == "");
  CHECK(contains(fault("dp: 16, ep: 8, expert_overlap: true, shared_expert_overlap: true"),
                 "(expert_overlap) or by the shared experts, not by both"));
  CHECK(contains(fault("dp: 16, ep: 8, expert_overlap: true, dispatcher: allgather"),
                 "allgather does not overlap with computation; set expert_overlap: false"));
  CHECK(contains(fault("dp: 16, expert_overlap: true"), "expert_overlap needs ep above 1"));
  CHECK(contains(fault("pp: 2, dp: 8, ep: 8, expert_overlap: true"), "needs virtual stages"));
  CHECK(fault("pp: 2, vpp: 2, dp: 8, ep: 8, expert_overlap: true") == "");
  CHECK(contains(fault("dp: 16, ep: 8, expert_overlap: true, recompute: full"),
                 "does not go with full recomputation"));
  CHECK(fault("pp: 2, dp: 8, ep: 8, expert_overlap: true", "hai-llm") == "");
}

}  // namespace expert_recipe_test
