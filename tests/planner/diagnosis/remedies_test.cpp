// What is named when nothing fits, each of it found by a search.
#include "planner/diagnosis/remedies.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/run_program.hpp"

namespace remedies_test {

using costmodel::Evaluator;
using costmodel::Scenario;
using fixtures::contains;
using planner::Diagnosis;
using scenarios::read;

namespace {

Diagnosis diagnosed(const Scenario& s, const planner::OtherStacks& stacks = {}) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto failed = planner::search(s, evaluator);
  REQUIRE(failed.plans.empty());
  return planner::diagnose(s, failed, stacks);
}

// The place of the remedy that begins with `start`; -1 without one.
int place_of(const Diagnosis& d, const std::string& start) {
  const auto at = std::ranges::find_if(
      d.remedies, [&](const planner::Remedy& r) { return r.sentence().rfind(start, 0) == 0; });
  return at == d.remedies.end() ? -1 : static_cast<int>(at - d.remedies.begin());
}

// Nothing of it fits, but nearly.
std::string nearly(const std::string& stack) {
  return "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090}\n"
         "training: {global_batch: 64, sequence: 8192, stack: " +
         stack + ", loss: flash}\nplan: {recompute: none}\n";
}

}  // namespace

TEST_CASE("when nothing fits the diagnosis names what would") {
  const Scenario s = read(
      "model: gpt3-175b\ncluster: {base: selene, devices: 16}\n"
      "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n"
      "plan: {recompute: none}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto failed = planner::search(s, evaluator);
  REQUIRE(failed.plans.empty());
  REQUIRE(failed.leanest.has_value());
  CHECK(failed.leanest_peak > s.cluster.device.memory);
  const auto diagnosis = planner::diagnose(s, failed);
  CHECK(diagnosis.obstacles.size() >= 3);
  REQUIRE_FALSE(diagnosis.remedies.empty());
  bool more_devices = false;
  for (const auto& remedy : diagnosis.remedies)
    more_devices |= contains(remedy.what, "devices instead of 16");
  CHECK(more_devices);

  const auto stopped = planner::diagnose(s, failed, {}, [] { return true; });
  CHECK(stopped.obstacles == diagnosis.obstacles);
  CHECK(stopped.remedies.empty());
  CHECK(stopped.tried == std::vector<std::string>{"not all, for it was interrupted"});
}

TEST_CASE("a key that no plan can have stands in the way, and freed it helps") {
  for (const auto& [stack, keys, reason, freed] :
       {std::tuple{"torchtitan", "dp_replicate: 3, zero: 3", "dp_replicate 3 does not divide dp 8",
                   "free plan.dp_replicate"},
        {"megatron-2021", "pp: 4, vpp: 5", "24 layers do not divide into pp 4 x vpp 5",
         "free plan.vpp"}}) {
    CAPTURE(keys);
    const Diagnosis d =
        diagnosed(read(fmt::format("model: gpt3-760m\ncluster: {{base: dgx-h100, devices: 8}}\n"
                                   "training: {{global_batch: 16, sequence: 2048, stack: {}}}\n"
                                   "plan: {{{}}}\n",
                                   stack, keys)));
    REQUIRE_FALSE(d.obstacles.empty());
    CHECK(contains(d.obstacles.front(), reason));
    CHECK(place_of(d, freed) >= 0);
  }
}

TEST_CASE("limits of the search stand in the way, and widened they help") {
  const Scenario s = read(
      "model: gpt3-175b\ncluster: {base: selene, devices: 1536}\n"
      "training: {global_batch: 1536, sequence: 2048, stack: megatron-2021}\n"
      "search: {max_tp: 8, max_pp: 2}\n");
  const auto d = diagnosed(s);
  CHECK(std::ranges::any_of(d.obstacles, [](const std::string& line) {
    return line.ends_with(": fits, with search.max_pp=8");
  }));
  const int at = place_of(d, "a wider search: search.max_pp=");
  REQUIRE(at >= 0);
  Scenario wider = s;
  wider.search.max_pp = d.remedies[static_cast<std::size_t>(at)].best.plan.pp;
  Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK_FALSE(planner::search(wider, evaluator).plans.empty());
}

TEST_CASE("everything that helps is named, what takes least time of the devices first") {
  const planner::OtherStacks stacks{{"megatron-bridge", "no-such-stack"},
                                    [](const std::string& n) { return read(nearly(n)); }};
  const Diagnosis d = diagnosed(read(nearly("megatron-core-2026")), stacks);
  const std::vector<std::string> all{"all of the memory: search.memory_margin=0: ",
                                     "free plan.recompute: ",
                                     "plan.recompute={modules: [",
                                     "moments of two bytes: training.moment_precision=bf16: ",
                                     "another stack: training.stack=megatron-bridge: ",
                                     "moments of one byte, by blocks (bitsandbytes): "
                                     "training.optimizer=adam-8bit: ",
                                     "one moment of matrices instead of two: "
                                     "training.optimizer=muon: ",
                                     "sums of rows and columns instead of moments: "
                                     "training.optimizer=adafactor: ",
                                     "one moment instead of two: training.optimizer=sgd: ",
                                     "16 devices instead of 8 (more than the 8 whose links are "
                                     "described): ",
                                     "sequence 4096 instead of 8192: "};
  for (const std::string& start : all) {
    CAPTURE(start);
    CHECK(place_of(d, start) >= 0);
  }
  CHECK(std::ranges::is_sorted(d.remedies, {}, &planner::Remedy::device_time));
}

TEST_CASE("the fewest nodes, not the next power of two, and fewer do not hold it") {
  const auto on = [](int devices) {
    return read("model: gpt3-175b\ncluster: {base: selene, devices: " + std::to_string(devices) +
                "}\ntraining: {global_batch: 64, sequence: 2048, stack: megatron-2021}\n");
  };
  CHECK(place_of(diagnosed(on(16)), "48 devices instead of 16: ") >= 0);
  for (const int fewer : {24, 40}) {
    const Scenario s = on(fewer);
    Evaluator evaluator(s.model, s.cluster, s.training);
    CHECK(planner::search(s, evaluator).plans.empty());
  }
}

TEST_CASE("parts of the first node are devices too") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 1}\n"
      "training: {global_batch: 60, sequence: 2048, stack: megatron-core-2026}\n");
  CHECK(place_of(diagnosed(s), "2 devices instead of 1: ") >= 0);
}

TEST_CASE("a fine-tuning that nothing fits is told what LoRA and QLoRA need") {
  const auto tuned = [](const std::string& method, const std::string& stack) {
    return read(
        "model: llama-3-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 1}\n"
        "training: {global_batch: 8, sequence: 1024, stack: " +
        stack + (method.empty() ? "" : ", fine_tuning: {method: " + method + "}") + "}\n");
  };
  const planner::OtherStacks stacks{{}, {}, tuned};
  const Diagnosis d = diagnosed(tuned("full", "torchtitan"), stacks);
  const int lora =
      place_of(d,
               "adapters beside a frozen base of 16 bits: training.fine_tuning.method=lora and "
               "training.stack=peft: ");
  CHECK(lora >= 0);
  CHECK(place_of(d,
                 "adapters beside a frozen base of 4 bits: training.fine_tuning.method=qlora "
                 "and training.stack=peft: ") >= 0);
  CHECK(place_of(diagnosed(tuned("full", "peft"), stacks),
                 "adapters beside a frozen base of 16 bits: training.fine_tuning.method=lora: ") >=
        0);
  // What does not say that it is a pretraining may be a fine-tuning.
  const planner::OtherStacks with_command{{}, {}, tuned, [](const auto& settings) {
                                            return fmt::format("plan a {}",
                                                               fmt::join(settings, " "));
                                          }};
  const Diagnosis unsaid = diagnosed(tuned("", "torchtitan"), with_command);
  const int adapted = place_of(unsaid,
                               "if it is a fine-tuning, adapters beside a frozen base of 16 bits: "
                               "training.fine_tuning.method=lora and training.stack=peft: ");
  REQUIRE(adapted >= 0);
  CHECK(unsaid.remedies[static_cast<std::size_t>(adapted)].sentence().ends_with(
      "; plan a training.fine_tuning.method=lora training.stack=peft"));
}

namespace {

// gpt2-large on a V100: 57.7 of 31.75 GiB.
const char* const too_large =
    "model: gpt2-large\ncluster: {base: dgx-v100, devices: 1}\n"
    "training: {sequence: 1024, global_batch: 16, precision: fp16,\n"
    "  stack: {base: megatron-core-2026, attention: unfused}, loss: unfused}\n"
    "plan: {tp: 1, pp: 1, micro_batch: 8, zero: 0, recompute: none}\n";

// What `command` prints as JSON, with `settings` by --set.
nlohmann::json answered(const program::Scratch& scratch, std::vector<std::string> words,
                        const std::vector<std::string>& settings, int status) {
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), {"--format", "json"});
  const auto done = program::run(words, scratch);
  CHECK(done.status == status);
  return nlohmann::json::parse(done.out);
}

}  // namespace

TEST_CASE("each change offered to make a plan fit is one that evaluate calls fitting") {
  const program::Scratch scratch;
  scratch.write("gpt2.yaml", too_large);
  struct Asked {
    std::vector<std::string> words, settings;
  };
  for (const auto& [words, settings] :
       {Asked{{"evaluate", "gpt2.yaml"}, {}},
        Asked{{"evaluate", "mixtral-8x7b-16-h100"}, {"plan.etp=1"}},
        Asked{{"evaluate", "gpt3-175b-selene"}, {"plan={tp: 8, pp: 4, micro_batch: 1}"}},
        Asked{{"evaluate", "llama-3-70b", "--gpus", "8xh100"},
              {"training.global_batch=8", "training.stack=deepspeed", "plan={zero: 1}"}},
        // Its stack chooses dp_replicate by the number of nodes, where a plan shards.
        Asked{{"evaluate", "llama-2-13b", "--gpus", "16xa100"},
              {"training.global_batch=256", "training.stack=internevo", "plan={zero: 0}"}},
        Asked{{"evaluate", "llama-2-13b", "--gpus", "16xa100-40gb"},
              {"training.global_batch=256", "training.stack=internevo", "plan={zero: 1}"}},
        Asked{{"evaluate", "llama-65b-qlora-48gb"}, {"training.sequence=16384"}}}) {
    CAPTURE(words[1]);
    const auto failed = answered(scratch, words, settings, 3);
    const auto& changes = failed["fitting_changes"];
    REQUIRE(changes.size() > 0);
    CHECK(changes.size() == failed["remedies"].size());
    for (const auto& change : changes) {
      CAPTURE(change["change"].get<std::string>());
      auto set = settings;
      std::vector<std::string> keys;
      for (const std::string setting : change["set"]) {
        set.push_back(setting);
        keys.push_back(setting.substr(0, setting.find('=')));
      }
      std::ranges::sort(keys);
      CHECK(std::ranges::adjacent_find(keys) == keys.end());  // each key once
      const auto then = answered(scratch, words, set, 0);
      CHECK(then["memory"]["fits"] == true);
      CHECK(then["memory"]["peak_bytes"] == change["peak_bytes"]);
      CHECK(then["time"]["iteration_s"].get<double>() ==
            doctest::Approx(change["iteration_s"].get<double>()));
      CHECK(then["memory"]["fits_probability"] == change["fits_probability"]);
    }
  }
}

TEST_CASE("a smaller micro-batch is among them: two sequences of gpt2-large, not four") {
  const Scenario s = read(too_large);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto estimate = evaluator.estimate(costmodel::resolve_plan(s));
  const auto changes = planner::fitting_changes(estimate, s);
  const auto smaller = std::ranges::find(changes, "micro_batch 8 -> 2", &planner::Remedy::what);
  REQUIRE(smaller != changes.end());
  CHECK(smaller->settings == std::vector<std::string>{"plan.micro_batch=2"});
  CHECK(std::ranges::is_sorted(changes, {}, &planner::Remedy::device_time));
  auto four = estimate.plan;
  four.micro_batch = 4;
  CHECK(evaluator.cost(four).peak > planner::memory_limit(s));
  // What fits needs no change.
  CHECK(planner::fitting_changes(smaller->best, s).empty());
  CHECK(planner::fitting_changes(estimate, s, {}, [] { return true; }).size() <= changes.size());
}

TEST_CASE("the runtime of this project is no stack to change to") {
  const Scenario s = read(
      "model: qwen3-14b\ncluster: {base: dgx-v100, devices: 8}\ntraining: {global_batch: 16, "
      "sequence: 32768, precision: fp16, stack: deepspeed-2021}\n");
  for (const char* own : {"shardplan-cpu", "shardplan-cuda"}) {
    const planner::OtherStacks stacks{{own}, [&](const std::string& name) {
                                        Scenario changed = s;
                                        changed.training.stack =
                                            read(
                                                "model: qwen3-14b\ncluster: {base: dgx-v100, "
                                                "devices: 8}\ntraining: {global_batch: 16, "
                                                "sequence: 32768, precision: fp16, stack: " +
                                                name + "}\n")
                                                .training.stack;
                                        return changed;
                                      }};
    for (const auto& remedy : diagnosed(s, stacks).remedies)
      CHECK_FALSE(contains(remedy.what, own));
  }
}

TEST_CASE("recomputed layers are as few as fit") {
  const Scenario s = read(too_large);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto changes = planner::fitting_changes(evaluator.estimate(costmodel::resolve_plan(s)), s);
  const auto few = std::ranges::find_if(changes, [](const planner::Remedy& r) {
    return r.best.plan.recompute.granularity == costmodel::Recomputation::full &&
           r.best.plan.recompute.layers > 0;
  });
  REQUIRE(few != changes.end());
  auto fewer = few->best.plan;
  --fewer.recompute.layers;
  CHECK(evaluator.cost(few->best.plan).peak <= planner::memory_limit(s));
  CHECK(evaluator.cost(fewer).peak > planner::memory_limit(s));
}

TEST_CASE(
    "a plan chosen with a confidence has that chance, and one that is asked more keeps more") {
  const auto chance = [](const std::string& confidence) {
    const Scenario s = read(
        "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
        "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2026}\n"
        "search: {memory_confidence: " +
        confidence + "}\n");
    CHECK(fits_probability(planner::memory_limit(s), s.cluster.device.memory,
                           s.training.peak_errors) == doctest::Approx(std::stod(confidence)));
    Evaluator evaluator(s.model, s.cluster, s.training);
    const auto found = planner::search(s, evaluator);
    REQUIRE_FALSE(found.plans.empty());
    const auto& best = found.plans.front();
    CHECK(planner::fit_of(best, s.search.memory_margin) == planner::MemoryFit::fits);
    return fits_probability(best.peak, best.capacity, s.training.peak_errors);
  };
  CHECK(chance("0.7") >= 0.7);
  CHECK(chance("0.95") >= 0.95);
}

}  // namespace remedies_test
