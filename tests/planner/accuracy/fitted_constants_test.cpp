#include "planner/accuracy/fitted_constants.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/scenario/run_traits.hpp"
#include "planner/accuracy/evidence.hpp"
#include "planner/accuracy/validation.hpp"
#include "tests/planner/support/documents.hpp"
#include "tests/run_program.hpp"

namespace fitted_constants_test {

using namespace planner;

namespace {

constexpr const char* configs = SHARDPLAN_SOURCE_DIR "/configs";

// A run that may decide constants, and what it is of.
struct Deciding {
  EvidenceRun run;
  std::set<std::string> files;  // "devices/h100-sxm5-80gb": its device, stack and cluster
  std::string model;
};

// A file of the configurations, and those that it is based on.
void add_with_bases(const std::string& folder, std::string name, const costmodel::ConfigPath& path,
                    std::set<std::string>& files) {
  for (;;) {
    files.insert(folder + "/" + name);
    const std::string file = std::string(configs) + "/" + folder + "/" + name + ".yaml";
    if (!std::filesystem::exists(file)) return;
    const costmodel::Value* base = costmodel::loaded(path, file).find("base");
    if (base == nullptr) return;
    name = base->text;
  }
}

std::vector<Deciding> deciding_runs(const costmodel::ConfigPath& path) {
  std::vector<Deciding> all;
  for (EvidenceRun& run : read_evidence_runs({std::string(configs) + "/evidence"})) {
    if (!run.measured.iteration || !run.decides || !run.contradicted.empty()) continue;
    costmodel::RunTraits traits;
    try {
      traits = costmodel::traits_of(costmodel::read_scenario(run.scenario, run.id, path));
    } catch (const costmodel::ConfigError&) {  // printed by `validate`
      continue;
    }
    std::set<std::string> files;
    add_with_bases("devices", traits.device, path, files);
    add_with_bases("stacks", traits.stack, path, files);
    const costmodel::Value* cluster = run.scenario.find("cluster");
    if (const auto* base = cluster != nullptr ? cluster->find("base") : nullptr)
      add_with_bases("clusters", base->text, path, files);
    all.push_back({std::move(run), std::move(files), std::to_string(traits.parameters)});
  }
  return all;
}

// By source the runs whose times move with a constant, with their models: one a source; of the only
// source, and of the only model, as many as it takes to show another.
using Decided = std::map<std::string, std::map<std::string, std::string>>;

template <class Moves>
Decided decided_by(const FittedConstant& constant, const std::vector<Deciding>& runs,
                   const Moves& moves) {
  Decided by;
  std::set<std::string> models;
  for (const int tries : {12, 400}) {
    if (tries > 12 && by.size() > 1 && models.size() > 1) break;
    std::map<std::string, int> tried;
    for (const Deciding& d : runs) {
      const bool named = std::ranges::any_of(
          constant.files, [&](const std::string& file) { return d.files.contains(file); });
      if (!named || (by.contains(d.run.source) && (tries == 12 || models.size() > 1))) continue;
      if (++tried[d.run.source] > tries || !moves(d)) continue;
      by[d.run.source][d.run.id] = d.model;
      models.insert(d.model);
    }
  }
  return by;
}

// docs/fitted-constants.md ends with its table, which SHARDPLAN_UPDATE_GOLDEN=1 writes anew.
constexpr const char* page = "docs/fitted-constants.md";
constexpr const char* title = "| constant | key | value | prior | what it is | decided by |";

std::string row_of(const FittedConstant& c, const Decided& by) {
  std::string names;
  for (const auto& [source, own] : by) names += (names.empty() ? "" : ", ") + source;
  if (by.size() > 4) names = fmt::format("{} sources", by.size());
  return fmt::format("| {} | `{}` | {:.4g} | {:.3g}: {} | {} | {} |", c.name, c.key, c.value,
                     c.prior, c.from, c.is, names);
}

void check_page(const documents::Lines& rows) {
  documents::Lines now = documents::read(page);
  const auto at = std::ranges::find(now, title);
  REQUIRE(now.end() - at > 1);
  documents::Lines expected(now.begin(), at + 2);  // the line of dashes too
  expected.insert(expected.end(), rows.begin(), rows.end());
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr) documents::write(page, now = expected);
  CHECK(now == expected);
}

}  // namespace

TEST_CASE("no constant rests on one run, and those of one model or one source are these") {
  const costmodel::ConfigPath path{{configs}};
  const auto constants = read_constants(constants_file("", path), path);
  const auto runs = deciding_runs(path);
  ConstantPlaces places(constants, path);
  std::string one_model, one_source;
  documents::Lines rows;
  for (std::size_t c = 0; c < constants.size(); ++c) {
    const Decided by = decided_by(constants[c], runs, [&](const Deciding& d) {
      const double value = constants[c].value;
      const auto time = [&](double set_to) {
        places.set(c, set_to);
        return predicted_iteration(d.run, path).value_or(NAN);
      };
      const double nudged = time(value * (value * 1.05 > constants[c].high ? 0.95 : 1.05));
      return std::abs(nudged / time(value) - 1) > 1e-6;
    });
    std::set<std::string> models;
    int moved = 0;
    for (const auto& [source, own] : by) {
      for (const auto& [run, model] : own) models.insert(model);
      moved += static_cast<int>(own.size());
    }
    CAPTURE(constants[c].name);
    CHECK(moved > 1);
    CHECK_FALSE(constants[c].is.empty());
    rows.push_back(row_of(constants[c], by));
    if (models.size() == 1) one_model += constants[c].name + "; ";
    if (by.size() == 1) one_source += constants[c].name + " by " + by.begin()->first + "; ";
  }
  // A 7B model is all that was measured of InternEvo.
  CHECK(one_model == "Element-wise kernels of InternEvo; RoCE of the InternEvo cluster; ");
  // Frameworks and networks that one source alone ran on.
  CHECK(one_source ==
        "GB300 products, fp8 by megatron-bridge; "
        "Blackwell products, nvfp4 by megatron-bridge; "
        "Element-wise kernels of llm-foundry by llm-foundry; "
        "Computation beside the collectives of FSDP 1 by llm-foundry; "
        "InfiniBand of the vTrain cluster by vtrain-multi; "
        "Ethernet of AWS p3 by alpa-e2e; "
        "nanotron, host at a tensor-parallel collective by ultrascale; "
        "nanotron, host of a tensor rank in a pipeline by ultrascale; ");
  CHECK(constants.size() <= 35);
  check_page(rows);
}

TEST_CASE("the file of constants is the one named, or the first on the path") {
  const program::Scratch scratch;
  const costmodel::ConfigPath both{{scratch.path().string(), configs}};
  CHECK(constants_file("mine.yaml", both) == "mine.yaml");
  CHECK(constants_file("", both) == std::string(configs) + "/fit.yaml");
  scratch.write("fit.yaml", "constants: []\n");
  CHECK(constants_file("", both) == (scratch.path() / "fit.yaml").string());
  CHECK_THROWS_AS(constants_file("", costmodel::ConfigPath{}), costmodel::ConfigError);
}

TEST_CASE("files with different values of a constant keep their ratio") {
  const program::Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "devices");
  scratch.write("devices/a.yaml", "gemm: {start_s: 2}\n");
  scratch.write("devices/b.yaml", "gemm: {start_s: 3}\n");
  scratch.write("fit.yaml",
                "constants:\n- {name: start, in: [devices/a, devices/b], key: gemm.start_s}\n");
  const costmodel::ConfigPath path{{scratch.path().string()}};
  const auto constants = read_constants(constants_file("", path), path);
  REQUIRE(constants.size() == 1);
  CHECK(constants.front().value == 2);
  ConstantPlaces(constants, path).set(0, 4);
  const auto value = [&](const char* file) {
    return costmodel::loaded(path, (scratch.path() / file).string())
        .find("gemm")
        ->find("start_s")
        ->text;
  };
  CHECK(value("devices/a.yaml") == "4");
  CHECK(value("devices/b.yaml") == "6");
}

TEST_CASE("bad files of constants say where and what") {
  const program::Scratch scratch;
  const costmodel::ConfigPath path{{configs}};
  const auto fault = [&](const std::string& text) {
    scratch.write("bad.yaml", text);
    try {
      read_constants((scratch.path() / "bad.yaml").string(), path);
    } catch (const costmodel::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string start = "constants:\n- {name: x, in: [";
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: gemm.size}\n").find("has no key gemm.size") !=
        std::string::npos);
  CHECK(fault(start + "devices/a100], key: gemm.efficiency}\n").find("a100") != std::string::npos);
  CHECK(fault("constants: 5\n").find("is not a list of constants") != std::string::npos);
  CHECK(fault("constants: []\n").find("is not a list of constants") != std::string::npos);
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: gemm.efficiency, low: 0.9, high: 0.5}\n")
            .find("low 0.9 is above high 0.5; exchange them") != std::string::npos);
  CHECK(fault(start + "a100], key: gemm.efficiency}\n").find("names no configuration") !=
        std::string::npos);
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: title}\n").find("is not a number") !=
        std::string::npos);
}

}  // namespace fitted_constants_test
