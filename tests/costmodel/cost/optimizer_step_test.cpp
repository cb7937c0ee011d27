// States of optimizers that treat parameters unlike, by hand.
#include "costmodel/cost/optimizer_step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "costmodel/cost/device_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_cost.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace optimizer_step_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

Scenario scenario(const std::string& optimizer, const std::string& model = "llama-2-7b",
                  const std::string& plan = "{tp: 1, pp: 1, dp: 8, zero: 0}") {
  return scenarios::read("model: " + model +
                         "\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 8, "
                         "sequence: 2048, precision: bf16, stack: megatron-core-2026, optimizer: " +
                         optimizer + "}\nplan: " + plan + "\n");
}

Estimate estimate(const Scenario& s) {
  return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
}

double optimizer_bytes(const Scenario& s, int rank = 0) {
  return estimate(s).memory.at(static_cast<std::size_t>(rank)).optimizer.value;
}

// Llama 2 7B: of each of 32 layers Q, K and V of 3 x 4096 rows, the output of 4096, gate and up of
// 2 x 11008, down of 4096 rows with 11008 columns, two gains; two tables of 32000 rows; a gain.
constexpr double layers = 32, h = 4096, f = 11008, vocab = 32000;
constexpr double parameters = layers * (4 * h * h + 3 * h * f + 2 * h) + 2 * vocab * h + h;

}  // namespace

TEST_CASE("8-bit Adam: two bytes a parameter and a scale of 4 for each block of 256") {
  const auto quantised = [](double n) { return 2 * n + 2 * 4 * n / 256; };
  const double moments = quantised(layers * (4 * h * h + 3 * h * f)) + layers * 2 * quantised(h) +
                         quantised(h)                             // gains: 4096 are not too few
                         + 8 * vocab * h + quantised(vocab * h);  // embedding in 32 bits, output
  CHECK(relative_error(optimizer_bytes(scenario("adam-8bit")), 4 * parameters + moments) <= 1e-12);
  CHECK(moments_of_vector(4095, Optimizer::adam8bit, 4) == Bytes(8 * 4095));
  CHECK(moments_of_vector(4096, Optimizer::adam8bit, 4) == Bytes(2 * (4096 + 16 * 4)));
}

// LayerNorm's gain and bias are tensors of 768 each, as are biases: too short for 8 bits.
TEST_CASE("8-bit Adam keeps vectors of fewer than 4,096 in 32 bits, each tensor by itself") {
  const Scenario s = scenarios::read(
      "model: {base: gpt3-2.7b}\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: "
      "8, sequence: 2048, precision: bf16, stack: megatron-core-2026, optimizer: adam-8bit}\n"
      "plan: {tp: 1, pp: 1, dp: 8, zero: 0}\n");
  const double width = 2560, depth = 32, positions = 2048, rows = 50257;
  const auto quantised = [](double n) { return 2 * n * (1 + 4.0 / 256); };
  // A layer's matrices and the biases of QKV (3 h) and the MLP's first product (4 h) are long
  // enough; four vectors of its norms and the biases of the two others are not.
  const double layer = quantised(12 * width * width) + quantised(7 * width) + 8 * 6 * width;
  const double padded = 50304;  // rows of the table, a multiple of 128
  CHECK(padded == padded_vocab(static_cast<std::int64_t>(rows), 1));
  const double moments = depth * layer + 8 * (padded + positions) * width + 8 * 2 * width;
  const double parameters =
      depth * (12 * width * width + 13 * width) + (padded + positions) * width + 2 * width;
  CHECK(relative_error(optimizer_bytes(s), 4 * parameters + moments) <= 1e-12);
}

TEST_CASE("Adafactor: a number a row and a column of each matrix, one an element of a vector") {
  const double rows = layers * ((3 * h + h) + (h + h) + (2 * f + h) + (h + f)) + 2 * (vocab + h);
  const double vectors = layers * 2 * h + h;
  CHECK(relative_error(optimizer_bytes(scenario("adafactor")),
                       4 * parameters + 4 * (rows + vectors)) <= 1e-12);
}

TEST_CASE("Muon: one moment of matrices, two of tables and vectors") {
  const double matrices = layers * (4 * h * h + 3 * h * f);
  const double moments = 4 * matrices + 8 * (parameters - matrices);
  CHECK(relative_error(optimizer_bytes(scenario("muon")), 4 * parameters + moments) <= 1e-12);
}

TEST_CASE("Momentum or nothing beside the master copy") {
  CHECK(relative_error(optimizer_bytes(scenario("sgd")), 8 * parameters) <= 1e-12);
  CHECK(relative_error(optimizer_bytes(scenario("plain-sgd")), 4 * parameters) <= 1e-12);
}

TEST_CASE("ZeRO 1 shares moments and products out over the replicas") {
  for (const char* optimizer : {"adam-8bit", "muon"}) {
    CAPTURE(optimizer);
    const Scenario whole = scenario(optimizer);
    const Scenario shared = scenario(optimizer, "llama-2-7b", "{tp: 1, pp: 1, dp: 8, zero: 1}");
    CHECK(relative_error(8 * optimizer_bytes(shared), optimizer_bytes(whole)) <= 1e-12);
    CHECK(estimate(shared).breakdown.optimizer < estimate(whole).breakdown.optimizer);
  }
}

TEST_CASE("A tied table is kept once, and in 32 bits as an embedding") {
  const std::string tied = "{base: llama-2-7b, tie_embeddings: true}";
  const double quantised = 2 * vocab * h * (1 + 4.0 / 256);
  const double less =
      optimizer_bytes(scenario("adam-8bit")) - optimizer_bytes(scenario("adam-8bit", tied));
  CHECK(relative_error(less, 4 * vocab * h + quantised) <= 1e-9);
  const double muon_less =
      optimizer_bytes(scenario("muon")) - optimizer_bytes(scenario("muon", tied));
  CHECK(relative_error(muon_less, 12 * vocab * h) <= 1e-9);
}

TEST_CASE(
    "Muon's step takes Newton-Schulz products of every matrix, halved by tensor parallelism") {
  const Scenario s = scenario("muon");
  const double times = layers;
  const auto& device = s.cluster.device;
  const double products =
      times * (orthogonalization_time(3 * h, h, device) + orthogonalization_time(h, h, device) +
               orthogonalization_time(2 * f, h, device) + orthogonalization_time(h, f, device))
                  .value;
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto cost = evaluator.cost(resolve_plan(s));
  CHECK(relative_error(cost.optimizer.products.value, products) <= 1e-9);
  CHECK(cost.ranks.at(0).after.optimizer.value > products);
  // 4 d² D + 2 d³ five times, no faster than the device's peak in bf16.
  const double flops = 5 * (4 * h * h * 3 * h + 2 * h * h * h);
  const double peak = device.peak_of(Precision::bf16).value;
  CHECK(orthogonalization_time(3 * h, h, device).value > flops / peak);
  CHECK(orthogonalization_time(3 * h, h, device) == orthogonalization_time(h, 3 * h, device));
  // Without bf16 in the next precision that the device has.
  DeviceSpec old = device;
  old.peak[static_cast<std::size_t>(Precision::bf16)] = FlopsPerSecond(0);
  CHECK(std::isfinite(orthogonalization_time(3 * h, h, old).value));
  const Scenario cut = scenario("muon", "llama-2-7b", "{tp: 2, pp: 1, dp: 4, zero: 0}");
  const auto half = Evaluator(cut.model, cut.cluster, cut.training).cost(resolve_plan(cut));
  CHECK(half.optimizer.products < cost.optimizer.products);
}

TEST_CASE("Experts' moments are shared out over their own replicas") {
  const Scenario s = scenario("muon", "mixtral-8x7b", "{tp: 1, pp: 1, dp: 8, ep: 8, zero: 1}");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto cost = evaluator.cost(resolve_plan(s));
  const OptimizerShare& share = cost.optimizer;
  // One expert a rank, of gate, up and down, in each of 32 layers; all eight ranks have others.
  CHECK(relative_error(share.expert_moments.value, 4 * 32 * 3.0 * 4096 * 14336) <= 1e-12);
  const auto& weights = cost.ranks.at(0).weights;
  const double kept =
      share.expert_moments.value + (share.moments.value - share.expert_moments.value) / 8;
  const double master = 4 * (weights.experts + (weights.all - weights.experts) / 8);
  CHECK(relative_error(cost.ranks.at(0).memory.optimizer.value, master + kept) <= 1e-12);
}

TEST_CASE("What cuts matrices is refused for optimizers of whole ones") {
  const auto reason = [](const char* optimizer, int zero) {
    const Scenario s = scenario(optimizer);
    ParallelPlan plan = resolve_plan(s);
    plan.zero = zero;
    const auto broken = violations(plan, s.model, s.cluster, s.training);
    return broken.empty() ? std::string() : broken.front().reason + "; " + broken.front().remedy;
  };
  CHECK(reason("adafactor", 1) ==
        "ZeRO 1 cuts the matrices that adafactor takes as a whole; set zero: 0, or "
        "training.optimizer: adam");
  CHECK(reason("muon", 2).find("ZeRO 2 cuts the matrices that muon") == 0);
  CHECK(reason("muon", 1).empty());
  CHECK(reason("adam-8bit", 3).empty());
}

}  // namespace optimizer_step_test
