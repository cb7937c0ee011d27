// Jobs for torchtitan: some written, others drawn at random.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "planner/frameworks/export_torchtitan.hpp"
#include "planner/frameworks/torchtitan_flavors.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/field_lists.hpp"
#include "tests/planner/support/random_scenario.hpp"

namespace torchtitan {

// On 16 H100s.
struct Job {
  std::string model = "llama-3.1-8b";
  std::string plan = "tp: 2, zero: 3";
  std::string training{};
  std::string stack = "torchtitan";
};

inline costmodel::Scenario scenario(const Job& job) {
  const std::string precision =
      job.training.find("precision: fp8") == std::string::npos ? ", precision: bf16" : "";
  return scenarios::read("model: " + job.model +
                         "\ncluster: {base: dgx-h100, devices: 16}\ntraining: {global_batch: 64, "
                         "sequence: 8192" +
                         precision + job.training + ", stack: " + job.stack + "}\nplan: {" +
                         job.plan + "}\n");
}

inline std::string name_of(const planner::TorchtitanSetting& setting) {
  return setting.section.empty() ? setting.key : setting.section + "." + setting.key;
}

// Every setting is one that torchtitan declares, and there once.
inline void check_keys(const planner::TorchtitanExport& exported,
                       planner::TorchtitanVersion version) {
  static const std::set<std::string> toml = field_lists::read("torchtitan_keys.txt");
  static const std::set<std::string> python = field_lists::read("torchtitan_python_keys.txt");
  const auto& known = version == planner::TorchtitanVersion::toml ? toml : python;
  std::set<std::string> seen;
  for (const auto& setting : exported.settings) {
    const std::string name = name_of(setting);
    CHECK_MESSAGE(known.contains(name), name);
    CHECK_MESSAGE(seen.insert(name).second, name);
  }
}

// A job on 8 to 128 devices, as YAML; perhaps one that no plan fits.
inline std::string drawn_job(random_scenario::Draw& draw, bool llama) {
  const auto flavors = planner::torchtitan_flavors();
  const auto& flavor = flavors[static_cast<std::size_t>(
      draw.number(0, llama ? 2 : static_cast<int>(flavors.size()) - 1))];
  random_scenario::Map training, plan;
  training.add("global_batch", draw.size({64, 128, 192, 256}))
      .add("sequence", draw.size({2048, 4096, 8192}));
  const std::string offers =
      "zero_bubble: true, experts: {flex_dispatcher: true, source: torchtitan}}";
  training.add("stack",
               "{base: torchtitan, " + draw.word({"", "", "whole_in_pipeline: false, "}) + offers);
  const std::string precision =
      llama ? draw.word({"bf16", "fp32"}) : draw.word({"bf16", "bf16", "fp32", "fp8", "mxfp8"});
  training.add("precision", precision);
  if (precision == "fp8" && draw.once_in(2)) training.add("parameter_gather_precision", "fp8");
  if (llama && draw.once_in(3)) training.add("gradient_precision", "bf16");
  if (draw.once_in(2))
    training.add("overlap", draw.word({"{compile: true}", "{compile: true, async_tp: true}"}));
  plan.add("tp", draw.size({1, 1, 2, 4, 8})).add("sequence_parallel", "true");
  const int pp = draw.of({1, 1, 2, 4, 8});
  plan.add("pp", std::to_string(pp));
  if (pp > 1 && draw.once_in(2)) {
    const bool folded = draw.once_in(3);
    plan.add("vpp", folded ? "2" : draw.size({2, 3, 4}));
    plan.add("schedule", folded ? "zero-bubble-v" : "interleaved");
  } else if (pp > 1) {
    plan.add("schedule", draw.word({"1f1b", "gpipe"}));
  }
  if (!llama && draw.once_in(3))
    plan.add("cp", "2").add("cp_comm", draw.word({"p2p", "all_gather"}));
  plan.add("zero", draw.size({0, 2, 3, 3})).add("micro_batch", draw.size({1, 1, 2, 4}));
  plan.add("recompute",
           llama ? draw.word({"none", "full"}) : draw.word({"none", "selective", "full"}));
  if (flavor.experts > 0) {
    plan.add("ep", draw.size({1, 2, 4, 8})).add("etp", draw.size({1, 1, 2, 4, 8}));
    if (draw.once_in(3)) plan.add("dispatcher", "deepep");
  }
  if (plan.text().find("tp: 1,") == 1) plan.drop("sequence_parallel");
  return "model: " + std::string(flavor.model) +
         "\ncluster: {base: dgx-gb200, devices: " + draw.size({8, 16, 32, 64, 128}) +
         "}\ntraining: " + training.text() + "\nplan: " + plan.text() + "\n";
}

}  // namespace torchtitan
