// Low-rank adapters in the op list of a layer.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/plan/trained_parameters.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace adapters_test {

using namespace costmodel;

namespace {

Scenario tuned(const std::string& tuning, const std::string& stack = "megatron-bridge",
               const std::string& model = "llama-3-8b") {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\n"
                         "training: {global_batch: 8, sequence: 1024, stack: " +
                         stack + ", fine_tuning: {" + tuning + "}}\n");
}

OpList block_of(const Scenario& s, int tp = 1, bool sequence_parallel = false) {
  ParallelPlan plan;
  plan.tp = tp;
  plan.dp = 8 / tp;
  plan.sequence_parallel = sequence_parallel;
  return Evaluator(s.model, s.cluster, s.training).op_list(LayerKind::block, plan);
}

double trained_in(const OpList& list) {
  double sum = 0;
  for (const Node& node : list.nodes) sum += node.frozen() ? 0 : weights_of(node.op);
  return sum;
}

int count(const OpList& list, Site site) {
  return static_cast<int>(std::count_if(list.nodes.begin(), list.nodes.end(),
                                        [site](const Node& node) { return node.site == site; }));
}

const Node& node_at(const OpList& list, Site site) {
  return *std::find_if(list.nodes.begin(), list.nodes.end(),
                       [site](const Node& node) { return node.site == site; });
}

int weight_gradients(const OpList& list) {
  const auto steps = backward_steps(list);
  return static_cast<int>(std::count_if(steps.begin(), steps.end(), [](const Step& step) {
    return step.pass == Pass::weight_gradient;
  }));
}

}  // namespace

TEST_CASE("the list's adapters add up to the closed form, on any number of tensor ranks") {
  const Scenario s = tuned("method: lora, rank: 16");
  const double whole = trained_parameters(s.model, s.training.fine_tuning);
  for (const int tp : {1, 2, 8}) {
    CAPTURE(tp);
    const OpList list = block_of(s, tp, tp > 1);
    CHECK(trained_in(list) * tp * static_cast<double>(s.model.layers) == whole);
    CHECK(weight_gradients(list) == 8);  // A and B of four products
    CHECK(partial_weights(list, {.tp = tp}) == 0);
  }
  CHECK(weight_gradients(block_of(tuned("method: lora", "peft"))) == 14);  // of seven projections
}

namespace {

// Transformers 4, where each expert is a module.
constexpr const char* of_modules = "{base: peft, adapters: {experts: true, source: x}}";

}  // namespace

TEST_CASE("experts that are no modules have no adapters, and stay in 16 bits in a base of 4") {
  const auto list_of = [](const char* stack) {
    const Scenario s = tuned("method: qlora", stack, "mixtral-8x7b");
    ParallelPlan plan;
    plan.dp = 8;
    return Evaluator(s.model, s.cluster, s.training).op_list(LayerKind::moe, plan);
  };
  const OpList parameters = list_of("peft"), modules = list_of(of_modules);
  CHECK(weight_gradients(parameters) == 8);  // A and B of four products
  const auto frozen = [](const OpList& list, Site site) {
    return node_at(list, site).frozen_bytes;
  };
  CHECK(frozen(parameters, Site::expert_down) == 2);
  CHECK(frozen(modules, Site::expert_down) < 0.6);
  CHECK(frozen(parameters, Site::attention_projection) ==
        frozen(modules, Site::attention_projection));
  // What is not quantised is not dequantised either.
  const auto dequantised = [](const OpList& list) {
    return std::ranges::count(list.nodes, Site::dequantised_weight, &Node::site);
  };
  CHECK(dequantised(modules) - dequantised(parameters) == 2);
}

TEST_CASE(
    "adapters of experts are grouped products, whose weights are shared out with the experts") {
  const Scenario s = tuned("method: lora", of_modules, "qwen3-30b-a3b");
  ParallelPlan plan;
  plan.dp = 8;
  const OpList list = Evaluator(s.model, s.cluster, s.training).op_list(LayerKind::moe, plan);
  CHECK(trained_in(list) * static_cast<double>(s.model.layers) ==
        trained_parameters(s.model, s.training.fine_tuning));
  CHECK(weight_gradients(list) == 14);
  const Node& down = node_at(list, Site::down_adapter_in);
  REQUIRE(std::holds_alternative<GroupedLinear>(down.op));
  CHECK(std::get<GroupedLinear>(down.op).experts == 128);
  CHECK_FALSE(down.frozen());
  CHECK(node_at(list, Site::expert_down).frozen());
}

TEST_CASE("a hybrid's lists have adapters where the layer has the projection, and add up") {
  const Scenario s =
      tuned("method: lora, rank: 8, targets: [q, k, v, o, gate, up, down]", "peft", "qwen3.5-4b");
  const Evaluator evaluator(s.model, s.cluster, s.training);
  double sum = 0;
  for (std::int64_t layer = 0; layer < s.model.layers; ++layer) {
    ParallelPlan plan;
    plan.dp = 8;
    sum += trained_in(evaluator.op_list(s.model.block_at(layer), plan));
  }
  CHECK(sum == trained_parameters(s.model, s.training.fine_tuning));
}

TEST_CASE("a frozen product has two thirds of its FLOPs, an adapter all of them") {
  const ModelFlops lora = model_flops(block_of(tuned("method: lora", "peft")), LayerKind::block);
  const ModelFlops full = model_flops(block_of(tuned("method: full", "peft")), LayerKind::block);
  const double tokens = 1024, h = 4096, kv = 1024, ffn = 14336;
  const double products = h * (h + 2 * kv) + h * h + 3 * h * ffn;
  const double adapters = 16 * (2 * (h + h) + 2 * (h + kv) + 3 * (h + ffn));
  CHECK(lora.full.value - full.full.value ==
        doctest::Approx(2 * tokens * (3 * adapters - products)).epsilon(1e-12));
}

TEST_CASE("a frozen product keeps no input, each of PEFT's adapters a copy of its own") {
  const OpList list = block_of(tuned("method: lora", "peft"));
  for (const Site site : {Site::qkv, Site::attention_projection, Site::mlp_gate_and_up})
    CHECK(node_at(list, site).saved.empty());
  CHECK(node_at(list, Site::q_adapter_in).saved != node_at(list, Site::v_adapter_in).saved);
  const OpList dropped = block_of(tuned("method: lora, dropout: 0.05", "peft"));
  CHECK(count(dropped, Site::adapter_dropout) == 7);
  CHECK(node_at(dropped, Site::q_adapter_in).saved != node_at(dropped, Site::v_adapter_in).saved);
  // The input is cast to fp32 and back once for each adapter, with dropout or without; dropout
  // keeps its mask, a byte an element.
  const auto kept = [](const OpList& of) { return footprint(of, Recomputed::nothing).kept; };
  const double read = 1024 * (6.0 * 4096 + 14336);
  CHECK(kept(dropped).value - kept(list).value == read);
  // Of a layer in all, as a run on an H100 has it: 424 MiB with 2,048 tokens (32 layers, 13.25 of
  // 31.78 GiB; configs/evidence/extra/pytorch-h100.yaml, p-8b-lora-2k).
  CHECK(kept(list).value / (1 << 20) == doctest::Approx(212).epsilon(0.01));
}

TEST_CASE("adapters over tensor ranks: what Megatron-Bridge's ParallelLinearAdapter sends") {
  const Scenario s = tuned("method: lora, targets: [q, o]");
  const OpList plain = block_of(s, 4), scattered = block_of(s, 4, true);
  const auto& in = std::get<Linear>(node_at(plain, Site::q_adapter_in).op);
  CHECK(in.n == 4);  // A of a column-parallel product is cut by its rank
  CHECK(in.k == 4096);
  const auto& row = std::get<Linear>(node_at(plain, Site::o_adapter_in).op);
  CHECK(row.n == 16);
  CHECK(row.k == 1024);
  CHECK(std::get<Linear>(node_at(plain, Site::o_adapter_out).op).n == 1024);
  CHECK(count(plain, Site::adapter_gradient) == 1);  // q's input gradient, summed by itself
  CHECK(count(scattered, Site::adapter_gradient) == 0);
  const auto& gather = std::get<Collective>(node_at(scattered, Site::adapter_result_gather).op);
  CHECK(gather.forward == CollectiveKind::all_gather);
  CHECK(gather.backward == CollectiveKind::all_gather);
  CHECK(gather.bytes.value == 1024 * 4096 * 2);
}

TEST_CASE("among products in fp8 adapters stay in 16 bits, and a base in fp8 is not dequantised") {
  const auto block = [](const std::string& base, Precision products = Precision::fp8) {
    Scenario s = tuned("method: lora, targets: attention, base_precision: " + base, "nemo-2025");
    s.training.precision = products;
    return block_of(s, 4, true);
  };
  const OpList narrow = block("fp8"), wide = block("bf16");
  CHECK(precision_of(std::get<Linear>(node_at(narrow, Site::qkv_adapter_in).op), Precision::fp8) ==
        Precision::bf16);
  const auto& qkv = std::get<Linear>(node_at(narrow, Site::qkv).op);
  CHECK(precision_of(qkv, Precision::fp8) == Precision::fp8);
  CHECK(qkv.narrow_weight);
  CHECK(count(narrow, Site::dequantised_weight) == 0);
  // By rows alone, a byte; blocks of mxfp8 by rows and by columns; else once in 16 bits, and cast
  // for each product.
  CHECK(qkv.weight_once);
  CHECK(node_at(narrow, Site::qkv).frozen_bytes == 1);
  const OpList blocks = block("fp8", Precision::mxfp8);
  CHECK_FALSE(std::get<Linear>(node_at(blocks, Site::qkv).op).weight_once);
  CHECK(node_at(blocks, Site::qkv).frozen_bytes == 2);
  CHECK(node_at(wide, Site::qkv).frozen_bytes == 2);
  CHECK_FALSE(std::get<Linear>(node_at(wide, Site::qkv).op).narrow_weight);
  CHECK(count(wide, Site::dequantised_weight) == 0);
}

TEST_CASE("NeMo sends each rank its own tokens of what a row-parallel adapter adds") {
  const std::string tuning = "method: lora, targets: attention";
  const auto sent = [&](const std::string& stack, bool sequence_parallel) {
    const OpList list = block_of(tuned(tuning, stack), 4, sequence_parallel);
    return std::get<Collective>(node_at(list, Site::adapter_result_gather).op);
  };
  const Collective exchange = sent("nemo-2025", true);
  CHECK(exchange.forward == CollectiveKind::all_to_all);
  CHECK(exchange.backward == CollectiveKind::all_to_all);
  CHECK(exchange.bytes.value == 1024 * 4096 / 4 * 2);  // a quarter of the columns of all tokens
  CHECK(sent("nemo-2025", false).forward == CollectiveKind::all_gather);
  CHECK(sent("megatron-bridge", true).forward == CollectiveKind::all_gather);
}

TEST_CASE("a quantised base is written out before each product, in backward again") {
  const OpList list = block_of(tuned("method: qlora", "peft"));
  CHECK(count(list, Site::dequantised_weight) == 4);  // QKV, projection, gate and up, down
  const Node& weight = node_at(list, Site::dequantised_weight);
  const double values = 6144.0 * 4096;
  CHECK(work_of(weight.op, Pass::forward, 2).moved.value ==
        doctest::Approx(values * (2 + 4.127 / 8)).epsilon(1e-4));
  const auto backward = backward_steps(list);
  CHECK(std::count_if(backward.begin(), backward.end(), [](const Step& step) {
          return std::holds_alternative<Dequantise>(step.node->op);
        }) == 4);
  // The largest lives beside its product.
  const OpList plain = block_of(tuned("method: lora", "peft"));
  CHECK(footprint(list, Recomputed::everything).kept ==
        footprint(plain, Recomputed::everything).kept);
  CHECK(footprint(list, Recomputed::everything).backward_transient >=
        footprint(plain, Recomputed::everything).backward_transient);
}

TEST_CASE("what is below the first adapter has no gradient") {
  const Scenario s = tuned("method: lora, targets: [o]");
  OpList list = block_of(s);
  const std::size_t all = backward_steps(list).size();
  list.input_trained = false;
  const auto steps = backward_steps(list);
  CHECK(steps.size() < all);
  CHECK(std::none_of(steps.begin(), steps.end(),
                     [](const Step& step) { return step.node->site == Site::qkv; }));
  ParallelPlan plan;
  plan.dp = 8;
  Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK(backward_steps(evaluator.op_list(LayerKind::embedding, plan)).empty());
}

}  // namespace adapters_test
