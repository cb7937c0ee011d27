// `shardplan calibrate --for`: what is lacking is measured on this machine's CPU and added, and
// what cannot be is refused.
#include "calibrate/commands/for_command.hpp"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/commands/cpu_command.hpp"
#include "calibrate/profile/cpu_profile.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "tests/run_program.hpp"

namespace for_command_test {

using namespace costmodel;
using calibrate::Record;
using program::run;
using program::Scratch;

namespace {

bool holds(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

// Of this machine, with one product measured.
std::string profile(const std::string& processor = calibrate::this_machine().processor) {
  calibrate::Machine machine = calibrate::this_machine();
  machine.processor = processor;
  const auto record = [](const char* op, std::vector<double> point, double amount) {
    return Record{"t", op, Pass::forward, point, amount, {Seconds(1e-4), Seconds(1e-4), 5, 0.01}};
  };
  return to_yaml(calibrate::device_profile(
      {record("linear", {64, 64, 64}, 2.0 * 64 * 64 * 64), record("copy", {1e6}, 2e6),
       record("call", {1}, 1), record("yardstick", {1}, 1)},
      machine, "shardplan calibrate x"));
}

// Widths, heads and a vocabulary that no calibration has.
std::string scenario(bool llama, int tp, const std::string& plan = "pp: 1, dp: 2, micro_batch: 2") {
  return fmt::format(
      "model: {{kind: {}, layers: 3, hidden: 48, heads: 4, kv_heads: {}, vocab: 100, "
      "ffn_hidden: 88, max_positions: 24, tie_embeddings: {}, qkv_bias: true, source: a toy}}\n"
      "cluster: {{base: laptop-cpu, devices: {}}}\n"
      "training: {{global_batch: 8, sequence: 24, precision: fp32, stack: shardplan-cpu}}\n"
      "plan: {{tp: {}, {}}}\n",
      llama ? "llama" : "gpt", llama ? 2 : 4, !llama, 2 * tp, tp, plan);
}

program::Run calibrate_cpu(const Scratch& scratch, std::vector<std::string> more) {
  const std::vector<std::string> words{"calibrate", "--backend", "cpu", "--minutes", "0.01"};
  more.insert(more.begin(), words.begin(), words.end());
  return run(more, scratch, std::chrono::seconds(100));
}

std::string fault(const std::string& written, const std::string& own_profile,
                  std::vector<std::string> more = {}) {
  const Scratch scratch;
  scratch.write("s.yaml", written);
  scratch.write("cpu.yaml", own_profile);
  for (const char* word : {"--profile", "cpu.yaml", "--for", "s.yaml"}) more.emplace_back(word);
  if (std::ranges::count(more, "--out") == 0) more.insert(more.end(), {"--out", "new.yaml"});
  const auto done = calibrate_cpu(scratch, more);
  CHECK(done.status == 2);
  CHECK(done.out == "");
  CHECK(!std::filesystem::exists(scratch.path() / "new.yaml"));
  CHECK(!std::filesystem::exists(scratch.path() / "new.yaml.part"));
  return done.err;
}

}  // namespace

TEST_CASE("what a profile lacks is measured, whatever the tensor ranks, and then nothing is") {
  for (const bool llama : {false, true}) {
    for (const int tp : {1, 2}) {
      CAPTURE(llama);
      CAPTURE(tp);
      const Scratch scratch;
      scratch.write("s.yaml", scenario(llama, tp));
      scratch.write("cpu.yaml", profile());
      const auto listed = calibrate_cpu(scratch, {"--profile", "cpu.yaml", "--for", "s.yaml"});
      CHECK(listed.status == 0);
      CHECK(holds(listed.out, "cpu.yaml lacks "));
      CHECK(holds(listed.out, fmt::format("linear m 48, n {}, k 48: forward, input gradient, "
                                          "weight gradient",
                                          llama ? 96 / tp : 144 / tp)
                                  .c_str()));
      const auto done =
          calibrate_cpu(scratch, {"--profile", "cpu.yaml", "--for", "s.yaml", "--out", "new.yaml"});
      CHECK(done.status == 0);
      CHECK(holds(done.err, listed.out.c_str()));  // before measuring
      CHECK(!std::filesystem::exists(scratch.path() / "new.yaml.part"));
      const auto again = calibrate_cpu(scratch, {"--profile", "new.yaml", "--for", "s.yaml"});
      CHECK(again.out == "new.yaml has every shape of s\n");
      const std::string text = scratch.read("new.yaml");
      CHECK(holds(text, "m: [64]"));  // the grid
      CHECK(holds(text, "--for s.yaml"));
      const auto nothing = calibrate_cpu(
          scratch, {"--profile", "new.yaml", "--for", "s.yaml", "--out", "same.yaml"});
      CHECK(nothing.status == 0);
      CHECK(holds(nothing.out, "0 measurements"));
    }
  }
}

TEST_CASE("a run is predicted by the shapes, and by the grid elsewhere") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario(true, 1));
  scratch.write("cpu.yaml", profile());
  CHECK(calibrate_cpu(scratch, {"--profile", "cpu.yaml", "--for", "s.yaml", "--out", "new.yaml"})
            .status == 0);
  const auto path = config_path({});
  const auto subject = calibrate::subject_of((scratch.path() / "s.yaml").string(), path,
                                             runtime::backend_named("threads"));
  const auto device = [&](const char* file) {
    return read_device(parse_yaml(scratch.read(file), file), file);
  };
  const DeviceSpec before = device("cpu.yaml"), after = device("new.yaml");
  CHECK(lacking_shapes(subject, after).empty());
  const auto forward = [&](const DeviceSpec& by, std::int64_t sequence) {
    ClusterSpec cluster = subject.evaluator.cluster();
    cluster.device = by;
    TrainingSpec training = subject.evaluator.training();
    training.sequence = sequence;
    return Evaluator(subject.evaluator.model(), cluster, training)
        .cost(subject.plan)
        .times.forward.front()
        .value;
  };
  CHECK(forward(after, 24) != forward(before, 24));
  // Its operators, measured in their places, are what the layers are made of.
  double sum = 0;
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head})
    for (const Node& node : subject.evaluator.op_list(kind, subject.plan).nodes)
      if (const auto time = measured_time(node.op, Pass::forward, after, Precision::fp32))
        sum += (kind == LayerKind::block ? 3 : 1) * time->value;
  CHECK(forward(after, 24) == doctest::Approx(sum).epsilon(0.01));
}

TEST_CASE("an interrupted measurement is taken up where it ended") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario(false, 1));
  const auto subject = calibrate::subject_of((scratch.path() / "s.yaml").string(), config_path({}),
                                             runtime::backend_named("threads"));
  const DeviceSpec device = read_device(parse_yaml(profile(), "cpu.yaml"), "cpu");
  auto tasks = cpu_shape_tasks(subject, device, true);
  REQUIRE(tasks.size() == 2);
  const std::string file = (scratch.path() / "part").string();
  std::vector<std::string> ran;
  const auto go = [&](const std::vector<calibrate::Task>& some) {
    calibrate::PartFile part(file, "header");
    calibrate::run_tasks(
        some, Seconds(0.5), part, calibrate::wall_clock(),
        [&](std::size_t, const std::string& name, double) { ran.push_back(name); });
    return part;
  };
  go({tasks.front()});
  const auto part = go(tasks);
  CHECK(ran == std::vector{tasks[0].name, tasks[1].name});
  CHECK(part.taken_up() * 2 == part.records().size());
  for (const Record& record : part.records()) CHECK(record.time.median.value > 0);
}

TEST_CASE("what cannot be measured is refused before anything is") {
  const auto settled = [](const std::string& plan) { return scenario(false, 1, plan); };
  CHECK(holds(fault(settled("pp: auto, micro_batch: 2"), profile()),
              "s.yaml:4:19: plan.pp is auto, and run executes one plan; settle it first: "
              "shardplan evaluate SCENARIO --format yaml --out FILE"));
  CHECK(holds(fault("workload: inference\nmodel: gpt2-medium\ncluster: dgx-h100\n", profile()),
              "'inference' is none of training"));
  CHECK(holds(fault(settled("dp: 2") + "modle: x\n", profile()), "s.yaml:5:1: "));
  CHECK(holds(fault(settled("dp: 2"), "title: nothing\n"), "cpu.yaml:1:1: "));
  CHECK(holds(fault(settled("dp: 2"), profile("A 6502")), "of another device, A 6502"));
  CHECK(holds(fault(settled("dp: 2"), profile(), {"--out", "cpu.yaml"}), "is an input"));
  CHECK(holds(fault(settled("dp: 2"), profile(), {"--quick"}), "--quick is of a new profile"));
  CHECK(holds(fault("model: mixtral-8x7b\n"
                    "cluster: {base: laptop-cpu, devices: 1}\n"
                    "training: {global_batch: 1, sequence: 64, precision: fp32, stack: "
                    "shardplan-cpu}\nplan: {}\n",
                    profile()),
              "the runtime has no experts"));
  CHECK(holds(
      fault(
          "model: gpt3-175b\ncluster: {base: laptop-cpu, devices: 1}\n"
          "training: {global_batch: 1000, sequence: 2048, precision: fp32, stack: shardplan-cpu}\n"
          "plan: {micro_batch: 1000}\n",
          profile()),
      "and this machine has "));
  const Scratch scratch;
  scratch.write("s.yaml", settled("dp: 2"));
  const auto fault_by = [&](const std::vector<std::string>& words) {
    const auto done = run(words, scratch);
    CHECK(done.status == 2);
    return done.err;
  };
  CHECK(holds(fault_by({"calibrate", "--from", "x", "--for", "s.yaml"}),
              "--for is a flag of --backend"));
  CHECK(holds(fault_by({"calibrate", "--backend", "cpu", "--profile", "x", "--out", "y"}),
              "--profile has nothing to measure"));
  CHECK(holds(fault_by({"calibrate", "--backend", "cpu", "--profile", "a100-pcie-80gb", "--for",
                        "s.yaml", "--out", "y"}),
              "was not measured by shardplan calibrate"));
}

TEST_CASE("what a GPU's profile lacks is listed without one, and measured on one alone") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario(true, 1));
  const std::vector<std::string> words{
      "calibrate", "--backend", "cuda", "--profile", "h100-sxm5-80gb-shardplan", "--for", "s.yaml"};
  const auto listed = run(words, scratch);
  CHECK(listed.status == 0);
  CHECK(holds(listed.out,
              "flash attention sequence 24, head_dim 12, heads 8, kv_heads 4: "
              "forward, input gradient\n"));
  auto measured = words;
  measured.insert(measured.end(), {"--out", "gpu.yaml"});
  const auto done = run(measured, scratch, std::chrono::seconds(100));
  if (done.status == 0 || done.status == 2) return;  // there is one, or another one
  CHECK(done.status == 4);
  CHECK(holds(done.err, "CUDA"));
  CHECK(!std::filesystem::exists(scratch.path() / "gpu.yaml"));
}

}  // namespace for_command_test
