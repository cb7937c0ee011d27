// Real training on threads: every way of cutting a model learns what one device learns, sends the
// bytes and holds the memory that the cost model says.
#include "runtime/training/training_run.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/devices/device_wrapper.hpp"
#include "tests/runtime/support/trained.hpp"

namespace training_run_test {

using costmodel::Scenario;
using training_test::gpt;
using training_test::llama;
using training_test::scenario;
using training_test::trained;

namespace {

// Of the combinations, every `stride`-th is run: under the sanitizers a step takes ten times as
// long. A model learns in `steps_to_learn`; cut, it does so in `steps`, after which an update that
// differs has changed the losses of several.
#if defined(__SANITIZE_THREAD__)
constexpr int steps = 2, steps_to_learn = 2;
constexpr std::size_t stride = 11;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int steps = 2, steps_to_learn = 2;
constexpr std::size_t stride = 5;
#else
constexpr int steps = 6, steps_to_learn = 20;
constexpr std::size_t stride = 1;
#endif

// One way of cutting and running a model: an index into the choices of each dimension.
struct Dimension {
  const char* name;
  std::vector<std::string> choices;
};

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> all{
      {"model", {gpt, llama}},
      {"attention", {"flash", "unfused"}},
      {"pp", {"1", "2", "4"}},
      {"tp", {"1", "2", "4"}},
      {"dp", {"1", "2", "4"}},
      {"schedule", {"serial", "gpipe", "1f1b", "interleaved"}},
      {"zero", {"0", "1", "2", "3"}},
      {"recompute", {"none", "selective", "full", "{granularity: full, layers: 1}"}},
      {"sequence_parallel", {"false", "true"}},
      {"micro_batch", {"1", "2"}},
      {"stages", {"even", "uneven"}},
      {"overlap", {"false", "true"}},
  };
  return all;
}

using Combination = std::vector<std::size_t>;

const std::string& choice(const Combination& c, const char* name) {
  const auto& all = dimensions();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::string(all[i].name) == name) return all[i].choices[c[i]];
  throw std::logic_error(name);
}

std::string text_of(const Combination& c) {
  std::string text;
  for (std::size_t i = 0; i < c.size(); ++i)
    text += fmt::format("{} {}, ", dimensions()[i].name,
                        i == 0 ? (c[0] == 0 ? "gpt" : "llama") : dimensions()[i].choices[c[i]]);
  return text;
}

// The scenario, or nothing where such a plan is not valid or not executed.
std::optional<Scenario> scenario_of(const Combination& c) {
  const auto number = [&](const char* name) { return std::stoi(choice(c, name)); };
  const int pp = number("pp");
  const bool interleaved = choice(c, "schedule") == "interleaved";
  std::string plan = fmt::format(
      "{{pp: {}, tp: {}, dp: {}, schedule: {}, vpp: {}, zero: {}, recompute: {}, "
      "sequence_parallel: {}, micro_batch: {}",
      pp, number("tp"), number("dp"), choice(c, "schedule"), interleaved ? 2 : 1, choice(c, "zero"),
      choice(c, "recompute"), choice(c, "sequence_parallel"), choice(c, "micro_batch"));
  if (choice(c, "stages") == "uneven") {
    if (pp != 2) return std::nullopt;
    plan += interleaved ? ", stage_layers: [3, 1, 2, 2]" : ", stage_layers: [3, 5]";
  }
  const int devices = pp * number("tp") * number("dp");
  if (devices > 8) return std::nullopt;
  try {
    Scenario s = scenario(
        choice(c, "model"),
        "stack: shardplan-cpu, overlap: {overlap_grad_reduce: " + choice(c, "overlap") + "}",
        plan + "}", devices);
    if (choice(c, "attention") == "unfused")
      s.training.stack.kernels.attention = costmodel::AttentionKernel::unfused;
    const auto resolved = costmodel::resolve_plan(s);
    if (!runtime::unsupported(s.model, s.training, resolved).empty()) return std::nullopt;
    return s;
  } catch (const costmodel::ConfigError&) {
    return std::nullopt;
  }
}

// Combinations that are executed, chosen so that every pair of choices that can stand together
// does so twice, in a shuffled order that is the same everywhere.
std::vector<Combination> pairwise_covering() {
  std::vector<Combination> valid{{}};
  for (const Dimension& d : dimensions()) {
    std::vector<Combination> longer;
    for (const Combination& c : valid) {
      for (std::size_t i = 0; i < d.choices.size(); ++i) {
        longer.push_back(c);
        longer.back().push_back(i);
      }
    }
    valid = std::move(longer);
  }
  std::mt19937 random(7);
  for (std::size_t i = valid.size(); i > 1; --i) std::swap(valid[i - 1], valid[random() % i]);
  // All that are chosen are among these. The rest would ask, for pairs that cannot stand together,
  // whether each is valid.
  valid.resize(5000);
  const auto code = [](const std::array<std::size_t, 4>& pair) {  // no dimension has 5 choices
    return ((pair[0] * dimensions().size() + pair[2]) * 4 + pair[1]) * 4 + pair[3];
  };
  std::vector<int> covered(dimensions().size() * dimensions().size() * 4 * 4);
  std::vector<Combination> chosen;
  for (const Combination& c : valid) {
    std::vector<std::array<std::size_t, 4>> fresh;
    for (std::size_t i = 0; i < c.size(); ++i)
      for (std::size_t j = i + 1; j < c.size(); ++j)
        if (covered[code({i, c[i], j, c[j]})] < 2) fresh.push_back({i, c[i], j, c[j]});
    if (fresh.empty() || !scenario_of(c)) continue;
    for (const auto& pair : fresh) ++covered[code(pair)];
    chosen.push_back(c);
  }
  return chosen;
}

// Attention dropout is of the unfused kernels, so that each has a reference of its own.
const std::vector<double>& single_device_loss(const std::string& model,
                                              const std::string& attention) {
  static std::map<std::pair<std::string, std::string>, std::vector<double>> found;
  auto& loss = found[{model, attention}];
  if (!loss.empty()) return loss;
  Scenario s = scenario(model, "stack: shardplan-cpu", "{micro_batch: 4}", 1);
  if (attention == "unfused")
    s.training.stack.kernels.attention = costmodel::AttentionKernel::unfused;
  return loss = trained(s, steps).measured.loss;
}

}  // namespace

TEST_CASE("a small model learns on one device") {
  for (const char* model : {gpt, llama}) {
    const Scenario s = scenario(model, "stack: shardplan-cpu", "{micro_batch: 4}", 1);
    const auto loss = trained(s, steps_to_learn).measured.loss;
    REQUIRE(loss.size() == steps_to_learn);
    CHECK(loss.front() == doctest::Approx(std::log(480)).epsilon(0.01));
    if (steps_to_learn == 20) CHECK(loss.back() < loss.front() - 0.2);
  }
}

TEST_CASE(
    "however a model is cut, it learns what one device learns, and sends and holds what the "
    "cost model says") {
  const auto combinations = pairwise_covering();
  MESSAGE(combinations.size() << " combinations");
  CHECK(combinations.size() >= 60);
  for (std::size_t number = 0; number < combinations.size(); number += stride) {
    const Combination& c = combinations[number];
    const std::string what = text_of(c);
    CAPTURE(what);
    const auto outcome = trained(*scenario_of(c), steps);
    const auto& reference = single_device_loss(choice(c, "model"), choice(c, "attention"));
    CHECK(training_test::loss_difference(outcome.measured.loss, reference) <=
          training_test::loss_bound);
    const auto& held = outcome.measured.memory;
    REQUIRE(held.size() == outcome.predicted.memory.size());
    for (std::size_t p = 0; p < held.size(); ++p) {
      CAPTURE(p);
      const auto& predicted = outcome.predicted.memory[p];
      CHECK(held[p][0] == predicted.weights.value);
      CHECK(held[p][1] == predicted.gradients.value);
      CHECK(held[p][2] == predicted.optimizer.value);
      CHECK(held[p][3] == predicted.activations.value);
      const auto& sent = outcome.measured.traffic[p];
      const auto& said = outcome.predicted.rank_traffic[p];
      CHECK(sent.all_reduce.value == said.all_reduce.value);
      CHECK(sent.all_gather.value == said.all_gather.value);
      CHECK(sent.reduce_scatter.value == said.reduce_scatter.value);
      CHECK(sent.send.value == said.send.value);
    }
  }
}

namespace {

// Opened once, by another thread.
class Gate {
 public:
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // False where nobody opened it for long.
  bool pass() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// A rank's transport, whose lane beside it opens the gate when it is first used.
class Gated : public runtime::Transport {
 public:
  Gated(runtime::Transport& its, Gate* gate) : its_(its), gate_(gate) {}
  int rank() const override { return its_.rank(); }
  int size() const override { return its_.size(); }
  void stop() override { its_.stop(); }
  void heed() override { its_.heed(); }
  Transport* beside() override {
    if (!beside_) beside_ = std::make_unique<Gated>(*its_.beside(), opened_);
    return beside_.get();
  }
  void send(int to, int tag, std::span<const std::byte> message) override {
    if (gate_ != nullptr) gate_->open();
    its_.send(to, tag, message);
  }
  void recv(int from, int tag, std::span<std::byte> message) override {
    its_.recv(from, tag, message);
  }
  void open_beside(Gate& gate) { opened_ = &gate; }

 private:
  runtime::Transport& its_;
  Gate* gate_;
  Gate* opened_ = nullptr;
  std::unique_ptr<Gated> beside_;
};

// A device that begins the last layer's part of the last backward when the gate is open.
class HeldBackward : public runtime::DeviceAround {
 public:
  HeldBackward(runtime::Device& device, Gate& gate, int backwards)
      : DeviceAround(device), gate_(gate), left_(backwards) {}

 private:
  void around(Work work, const runtime::OpCall& call) override {
    const bool last = work == Work::input_gradient &&
                      std::holds_alternative<costmodel::Embedding>(call.node.op) && --left_ == 0;
    if (last) CHECK(gate_.pass());
    through(work, call);
  }
  Gate& gate_;
  int left_;
};

// Whether rank 0's gradients were being summed before its last backward ended. Where they are to
// be, that waits for them.
bool reduced_beside(bool overlap) {
  const Scenario s = scenario(
      gpt, fmt::format("stack: shardplan-cpu, overlap: {{overlap_grad_reduce: {}}}", overlap),
      "{dp: 2, micro_batch: 2}", 2);
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  costmodel::Seconds first(1e9), last_backward(0);
  runtime::run_ranks(2, {}, [&](runtime::Transport& transport) {
    Gate gate;
    Gated gated(transport, nullptr);
    gated.open_beside(gate);
    runtime::CpuDevice cpu;
    HeldBackward held(cpu, gate, static_cast<int>(plan.micro_batches(s.training.global_batch)));
    const auto own =
        runtime::train(evaluator, plan, gated, overlap ? static_cast<runtime::Device&>(held) : cpu,
                       {.iterations = 1});
    if (transport.rank() != 0) return;
    for (const auto& reduction : own.reductions) first = min(first, reduction.start);
    for (const auto& action : own.actions)
      if (action.action.kind == costmodel::ActionKind::backward)
        last_backward = max(last_backward, action.end);
  });
  return first < last_backward;
}

}  // namespace

TEST_CASE("overlapped, gradients are summed before the last backward ends; else after it") {
  CHECK_FALSE(reduced_beside(false));
  CHECK(reduced_beside(true));
}

}  // namespace training_run_test
