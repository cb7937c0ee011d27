#include "planner/accuracy/refit.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "costmodel/base/error.hpp"
#include "planner/accuracy/validation.hpp"
#include "tests/run_program.hpp"

namespace refit_test {

using namespace planner;

namespace {

constexpr const char* configs = SHARDPLAN_SOURCE_DIR "/configs";

// Two runs of one source and one of another, all on A100s; the second source is 10 % slower than
// any efficiency explains.
std::string evidence(double slower, const std::vector<double>& measured) {
  std::string text = "source: {title: made by the program}\nruns:\n";
  const std::vector<int> stages{16, 12, 8};
  for (std::size_t i = 0; i < measured.size(); ++i) {
    text += fmt::format(
        "- id: r{}\n  model: gpt3-175b\n  cluster: {{base: selene, devices: {}}}\n"
        "  training: {{global_batch: 1536, sequence: 2048, precision: fp16, stack: "
        "megatron-2021}}\n"
        "  plan: {{tp: 8, pp: {}}}\n  measured: {{iteration_s: {:.9g}}}\n",
        i, 64 * stages[i], stages[i], measured[i] * slower);
  }
  return text;
}

constexpr const char* constants =
    "constants:\n- name: products\n  in: [devices/a100-sxm4-80gb]\n  key: gemm.efficiency\n"
    "  low: 0.3\n  high: 1\n";

// Times when products reach `efficiency` of the peak.
std::vector<double> truth(const program::Scratch& scratch, double efficiency) {
  std::ifstream in(std::string(configs) + "/devices/a100-sxm4-80gb.yaml");
  const std::string device((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::filesystem::create_directory(scratch.path() / "devices");
  const std::string key = "gemm:\n  efficiency: ";
  const std::size_t from = device.find(key) + key.size();
  REQUIRE(from > key.size());
  scratch.write("devices/a100-sxm4-80gb.yaml", device.substr(0, from) +
                                                   fmt::format("{}", efficiency) +
                                                   device.substr(device.find('\n', from)));
  scratch.write("unmeasured.yaml", evidence(1, {1, 1, 1}));
  const costmodel::ConfigPath path{{scratch.path().string(), configs}};
  std::vector<double> times;
  for (const auto& run : read_evidence_runs({(scratch.path() / "unmeasured.yaml").string()}))
    times.push_back(predicted_iteration(run, path).value());
  return times;
}

RefitResult refitted(const program::Scratch& scratch, const std::vector<std::string>& files,
                     bool cross_validate) {
  std::vector<std::string> operands;
  for (const auto& file : files) operands.push_back((scratch.path() / file).string());
  const costmodel::ConfigPath path{{configs}};
  const auto list = read_constants((scratch.path() / "constants.yaml").string(), path);
  return refit(operands, list, path, {cross_validate, 2, {}});
}

double macro(const RefitResult& result, FittedTo to) { return result.means(to).sources; }

}  // namespace

TEST_CASE("the constant that made the times is found again") {
  const program::Scratch scratch;
  scratch.write("constants.yaml", constants);
  for (const double efficiency : {0.55, 0.93}) {
    scratch.write("a.yaml", evidence(1, truth(scratch, efficiency)));
    const RefitResult result = refitted(scratch, {"a.yaml"}, false);
    CHECK(std::abs(result.constants.front().value / efficiency - 1) <= 0.005);
    CHECK(result.constants.front().runs == 3);
    CHECK(macro(result, FittedTo::configured) > 5);
    CHECK(macro(result, FittedTo::all) <= 0.5);
  }
}

TEST_CASE("a source left out is predicted by constants of the others") {
  const program::Scratch scratch;
  scratch.write("constants.yaml", constants);
  const auto times = truth(scratch, 0.6);
  scratch.write("a.yaml", evidence(1, times));
  scratch.write("b.yaml", evidence(1, times));
  scratch.write("c.yaml", evidence(1.25, times));
  const RefitResult result = refitted(scratch, {"a.yaml", "b.yaml", "c.yaml"}, true);
  // Two of three sources agree on 0.6, with or without one of them.
  CHECK(std::abs(result.constants.front().value / 0.6 - 1) <= 0.02);
  CHECK(result.by_source(FittedTo::other_sources).at("c") == doctest::Approx(20).epsilon(0.02));
  CHECK(result.by_source(FittedTo::other_sources).at("a") <= 13);
  CHECK(macro(result, FittedTo::other_sources) > macro(result, FittedTo::all) - 0.1);
}

TEST_CASE("a run that decides nothing is predicted by what the others decide") {
  const program::Scratch scratch;
  scratch.write("constants.yaml", constants);
  scratch.write("a.yaml", evidence(1, truth(scratch, 0.6)));
  const std::string undecided =
      "defaults: {decides: false}\n" + evidence(1.25, truth(scratch, 0.6));
  scratch.write("b.yaml", undecided);
  const RefitResult alone = refitted(scratch, {"a.yaml"}, false);
  const RefitResult both = refitted(scratch, {"a.yaml", "b.yaml"}, false);
  CHECK(both.constants.front().value == doctest::Approx(alone.constants.front().value));
  // Measured a quarter longer than those that decide.
  CHECK(both.by_source(FittedTo::all).at("b") == doctest::Approx(20).epsilon(0.05));
}

TEST_CASE("a constant that only the source left out decides goes back to its prior") {
  const program::Scratch scratch;
  scratch.write("constants.yaml",
                std::string(constants) + "  prior: 0.8\n  spread: 10\n  from: a data sheet\n");
  scratch.write("a.yaml", evidence(1, truth(scratch, 0.6)));
  const RefitResult result = refitted(scratch, {"a.yaml"}, true);
  CHECK(result.by_source(FittedTo::all).at("a") <= 0.5);
  const auto as_prior = truth(scratch, 0.8), measured = truth(scratch, 0.6);
  double sum = 0;
  for (std::size_t i = 0; i < measured.size(); ++i)
    sum += 100 * std::abs(as_prior[i] / measured[i] - 1) / 3;
  CHECK(result.by_source(FittedTo::other_sources).at("a") == doctest::Approx(sum).epsilon(1e-4));
}

TEST_CASE("the command line: text and JSON, and what it refuses") {
  const program::Scratch scratch;
  scratch.write("constants.yaml", constants);
  scratch.write("a.yaml", evidence(1, truth(scratch, 0.7)));
  const auto text = program::run({"validate", "a.yaml", "--fit", "constants.yaml"}, scratch);
  CHECK(text.status == 0);
  CHECK(text.err == "");
  CHECK(text.out.find("products") != std::string::npos);
  const auto experts = text.out.find("experts, over sources");
  REQUIRE(experts != std::string::npos);
  CHECK(text.out.substr(experts, text.out.find('\n', experts) - experts).ends_with(" -"));  // none
  const auto json = program::run({"validate", "a.yaml", "--fit", "constants.yaml", "--format",
                                  "json", "--leave-one-source-out"},
                                 scratch);
  CHECK(json.status == 0);
  CHECK(json.out.find("\"left_out_macro_mape_pct\"") != std::string::npos);
  const auto alone = program::run({"validate", "a.yaml", "--leave-one-source-out"}, scratch);
  CHECK(alone.status == 0);  // the constants of configs/fit.yaml
  CHECK(alone.out.find("A100 products") != std::string::npos);
  const auto above = program::run({"validate", "a.yaml", "--fit", "constants.yaml",
                                   "--leave-one-source-out", "--fail-above", "0.001"},
                                  scratch);
  CHECK(above.status == 4);
  CHECK(above.err.find("left out") != std::string::npos);
  const auto format =
      program::run({"validate", "a.yaml", "--fit", "constants.yaml", "--format", "csv"}, scratch);
  CHECK(format.status == 2);
}

TEST_CASE("a model family and a device are left out like a source") {
  const program::Scratch scratch;
  scratch.write("constants.yaml",
                std::string(constants) + "  prior: 0.8\n  spread: 10\n  from: a data sheet\n");
  const auto times = truth(scratch, 0.6);
  scratch.write("a.yaml", evidence(1, times));
  scratch.write("b.yaml", evidence(1, times));
  const RefitResult result = refitted(scratch, {"a.yaml", "b.yaml"}, true);
  CHECK(result.runs.front().traits.family == "gpt");
  CHECK(result.runs.front().traits.device == "a100-sxm4-80gb");
  CHECK(macro(result, FittedTo::other_sources) <= 0.5);  // the other source tells
  // All runs are of one family on one device: without them the constant is its prior.
  CHECK(macro(result, FittedTo::other_families) > 10);
  for (const auto& run : result.runs)
    CHECK(run.error(FittedTo::other_families) == run.error(FittedTo::other_devices));
}

TEST_CASE("threads share the runs and change no figure") {
  const program::Scratch scratch;
  scratch.write("constants.yaml", constants);
  scratch.write("a.yaml", evidence(1.1, truth(scratch, 0.6)));
  const std::string file = (scratch.path() / "constants.yaml").string();
  const auto text = [&](int threads) {
    const costmodel::ConfigPath path{{configs}};
    return to_string(refit({(scratch.path() / "a.yaml").string()}, read_constants(file, path), path,
                           {true, threads, {}}));
  };
  CHECK(text(1) == text(3));
}

TEST_CASE("a prior holds a constant that few runs decide") {
  const program::Scratch scratch;
  scratch.write("constants.yaml",
                std::string(constants) + "  prior: 0.8\n  spread: 0.001\n  from: a data sheet\n");
  scratch.write("a.yaml", evidence(1, truth(scratch, 0.6)));
  const RefitResult result = refitted(scratch, {"a.yaml"}, false);
  CHECK(std::abs(result.constants.front().value / 0.8 - 1) <= 0.02);
}

}  // namespace refit_test
