// `shardplan calibrate --from-trace`, `validate --traces` and `--calibrated` on synthetic traces.
#include "planner/commands/from_trace_command.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/planner/support/own_logs.hpp"
#include "tests/planner/support/traced_job.hpp"

namespace from_trace_command_test {

using fixtures::contains;
using own_logs::perform;
using program::Scratch;

namespace {

std::string at(const Scratch& scratch, const std::string& name) {
  return (scratch.path() / name).string();
}

void write(const Scratch& scratch) {
  scratch.write("s.yaml", traced_job::yaml);
  scratch.write("t.json", traced_job::trace({1.2, 1, 1, 1.1, 1, 1, 1, 1}));
}

double seconds(const std::vector<std::string>& words) {
  return nlohmann::json::parse(perform(words).text)["time"]["iteration_s"].get<double>();
}

}  // namespace

TEST_CASE("what is written is read again, and evaluate predicts the traced run by it") {
  const Scratch scratch;
  write(scratch);
  const std::string mine = at(scratch, "mine.yaml"), job = at(scratch, "s.yaml");
  const auto result = perform(
      {"calibrate", "--from-trace", at(scratch, "t.json"), "--scenario", job, "--out", mine});
  CHECK(contains(result.text, "is attributed to operators"));
  const auto json = nlohmann::json::parse(
      perform({"calibrate", "--from-trace", job + ":" + at(scratch, "t.json"), "--format", "json"})
          .text);
  const double unprofiled = json["traces"][0]["unprofiled_s"].get<double>();
  const double before = seconds({"evaluate", job, "--format", "json"});
  const double after = seconds({"evaluate", job, "--calibrated", mine, "--format", "json"});
  CHECK(std::abs(after / unprofiled - 1) < 0.02);
  CHECK(after > before);
  CHECK(contains(perform({"evaluate", job, "--calibrated", mine}).text, "kernels by 1 trace"));
  // A model's name and devices make a scenario too.
  const std::vector<std::string> named{"plan",         "llama-3-8b", "--gpus",   "8xh100",
                                       "--framework",  "torchtitan", "--format", "json",
                                       "--calibrated", mine};
  CHECK(contains(perform(named).text, "kernels by 1 trace"));
}

TEST_CASE("an interval that traces have earned widens with the distance of the shapes") {
  const Scratch scratch;
  write(scratch);
  const std::string mine = at(scratch, "mine.yaml"), job = at(scratch, "s.yaml");
  perform({"calibrate", "--from-trace", at(scratch, "t.json"), "--scenario", job, "--out", mine});
  const auto width = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"evaluate", job, "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto time = nlohmann::json::parse(perform(words).text)["time"];
    return std::log(time["interval_s"][1].get<double>() / time["interval_s"][0].get<double>());
  };
  const double usual = width({}), traced = width({"--calibrated", mine}),
               longer = width({"--calibrated", mine, "--set", "training.sequence=16384"}),
               narrow = width({"--calibrated", mine, "--set", "model.hidden=1024", "--set",
                               "training.sequence=1024"});
  CHECK(traced < usual);
  CHECK(longer > traced);
  CHECK(narrow > longer);
  CHECK(narrow == doctest::Approx(usual).epsilon(0.05));
}

TEST_CASE("a trace and a log fill the same record") {
  const Scratch scratch;
  write(scratch);
  const std::string job = at(scratch, "s.yaml");
  const double expected = seconds({"evaluate", job, "--format", "json"});
  std::string log;
  for (int i = 1; i <= 30; ++i) {
    log += fmt::format(
        " iteration {}/ 30 | consumed samples: {} | elapsed time per iteration (ms): {:.2f} | "
        "global "
        "batch size: 1 | lm loss: 7.1E+00 |\n",
        i, i, 1200 * expected);
  }
  scratch.write("run.log", log);
  const auto result = perform({"calibrate", "--from-trace", at(scratch, "t.json"), "--from-log",
                               job + ":" + at(scratch, "run.log"), "--scenario", job});
  CHECK(contains(result.text, "time_factor: "));
  CHECK(contains(result.text, "traces:"));
}

TEST_CASE("traces of two stacks, without a job, or of no kernels are refused") {
  const Scratch scratch;
  write(scratch);
  const auto refused = [](const std::vector<std::string>& words) {
    return fixtures::config_error([&] { perform(words); });
  };
  CHECK(contains(refused({"calibrate", "--from-trace", at(scratch, "t.json")}), "what job"));
  std::string other = traced_job::yaml;
  other.replace(other.find("torchtitan"), 10, "peft");
  other.replace(other.find(", zero: 3"), 9, "");
  scratch.write("o.yaml", other);
  CHECK(contains(
      refused({"calibrate", "--from-trace", at(scratch, "s.yaml") + ":" + at(scratch, "t.json"),
               at(scratch, "o.yaml") + ":" + at(scratch, "t.json")}),
      "one stack at a time"));
  scratch.write("c.yaml", program::replaced(traced_job::yaml, "dgx-h100", "dgx-a100"));
  CHECK(contains(
      refused({"calibrate", "--from-trace", at(scratch, "s.yaml") + ":" + at(scratch, "t.json"),
               at(scratch, "c.yaml") + ":" + at(scratch, "t.json")}),
      "a100-sxm4-80gb"));
  scratch.write(
      "a.json",
      R"({"traceEvents": [{"ph": "X", "cat": "compute", "name": "a", "ts": 1, "dur": 1}]})");
  CHECK(contains(refused({"calibrate", "--from-trace", at(scratch, "a.json"), "--scenario",
                          at(scratch, "s.yaml")}),
                 "no kernels"));
  CHECK(contains(refused({"calibrate", "--from-trace", at(scratch, "t.json"), at(scratch, "t.json"),
                          "--scenario", at(scratch, "s.yaml")}),
                 "is given twice"));
  std::string two = traced_job::trace({1, 1, 1, 1, 1, 1, 1, 1});
  const std::string stream = "\"stream\": 7";
  two.replace(two.rfind(stream), stream.size(), stream + ", \"device\": 1");
  scratch.write("two.json", two);
  CHECK(contains(refused({"calibrate", "--from-trace", at(scratch, "two.json"), "--scenario",
                          at(scratch, "s.yaml")}),
                 "kernels of 2 devices"));
}

}  // namespace from_trace_command_test
