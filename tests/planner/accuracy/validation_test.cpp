#include "planner/accuracy/validation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "planner/accuracy/scorecard_tables.hpp"
#include "planner/report/plan_report.hpp"
#include "tests/run_program.hpp"

namespace validation_test {

using namespace planner;

namespace {

const costmodel::ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};

ValidationRow timed(const std::string& source, double measured, double predicted) {
  ValidationRow row{"run", source, "iteration_s", measured, predicted, {}, ""};
  row.interval = costmodel::Interval{costmodel::Seconds(0.8 * predicted),
                                     costmodel::Seconds(1.25 * predicted)};
  return row;
}

}  // namespace

TEST_CASE("figures are those of the errors") {
  const std::vector<ValidationRow> rows{timed("a", 10, 11), timed("a", 10, 8), timed("b", 2, 3),
                                        timed("b", 4, 4)};
  const ErrorFigures all = figures_of(rows, "iteration_s");
  CHECK(all.rows == 4);
  CHECK(all.mape == doctest::Approx((10 + 20 + 50 + 0) / 4.0));
  CHECK(all.bias == doctest::Approx((10 - 20 + 50 + 0) / 4.0));
  CHECK(all.max_ape == doctest::Approx(50));
  CHECK(all.median_ape == doctest::Approx(10));
  CHECK(all.p90_ape == doctest::Approx(50));
  CHECK(all.coverage == doctest::Approx(75));  // 2 s lies below 0.8 x 3 s
  // All as wide as 0.8 to 1.25; one is outside by 2.4 / 2.
  CHECK(all.interval_score ==
        doctest::Approx(100 * (std::log(1.25 / 0.8) + 20 * std::log(1.2) / 4)));
  const ValidationSummary summary = summary_of(rows);
  CHECK(summary.macro_mape == doctest::Approx((15 + 25) / 2.0));
  CHECK(summary.by_source.at("b").mape == doctest::Approx(25));
}

TEST_CASE("PyTorch's iterations on one GPU are predicted from its kernels, on either card") {
  // Medians of runs whose host launches slowly vary by a tenth: the mean and the peaks are held.
  for (const std::string card : {"h100", "h200"}) {
    CAPTURE(card);
    const std::string file =
        SHARDPLAN_SOURCE_DIR "/configs/evidence/extra/pytorch-" + card + ".yaml";
    const auto rows = validate({file}, path);
    const ErrorFigures times = figures_of(rows, "iteration_s");
    CHECK(times.rows == 20);
    CHECK(times.mape < 6);
    CHECK(times.median_ape < 4.5);
    const ErrorFigures peaks = figures_of(rows, "peak_memory_bytes");
    CHECK(peaks.rows == 20);
    CHECK(peaks.mape < 5);
  }
}

TEST_CASE("experts and adapters under FSDP with Transformer Engine have kernels of their own") {
  const auto rows =
      validate({SHARDPLAN_SOURCE_DIR "/configs/evidence/extra/automodel-h100.yaml"}, path);
  const ErrorFigures times = figures_of(rows, "iteration_s");
  CHECK(times.rows == 4);
  CHECK(times.mape < 7);
  CHECK(times.max_ape < 15);
}

TEST_CASE(
    "what `plan` leaves free covers nine in ten of the peaks that were measured, and no more") {
  const auto rows = validate({SHARDPLAN_SOURCE_DIR "/configs/evidence"}, path);
  const auto covered = [&](double margin) {
    int all = 0, within = 0;
    for (const ValidationRow& row : rows) {
      if (row.quantity != "peak_memory_bytes" || !row.error.empty()) continue;
      ++all;
      within += row.measured * (1 - margin) <= row.predicted ? 1 : 0;
    }
    CHECK(all > 100);
    return static_cast<double>(within) / all;
  };
  CHECK(covered(costmodel::usual_memory_margin) >= 0.9);
  CHECK(covered(costmodel::usual_memory_margin - 0.01) < 0.9);
}

TEST_CASE("a run that cannot be predicted stays, with the reason; defaults lie under every run") {
  const program::Scratch scratch;
  scratch.write(
      "mine.yaml",
      "source: {title: mine}\n"
      "defaults:\n"
      "  model: {kind: gpt, layers: 4, hidden: 512, heads: 8, vocab: 51200}\n"
      "  cluster: {base: selene, devices: 4}\n"
      "  training: {global_batch: 16, sequence: 512, precision: fp16, stack: megatron-2021}\n"
      "runs:\n"
      "- {id: good, plan: {tp: 2}, measured: {iteration_s: 0.1, peak_memory_bytes: 4 GiB}}\n"
      "- {id: bad, plan: {tp: 3}, measured: {iteration_s: 0.1}, notes: no such plan}\n"
      "- {id: full, model: {layers: 96, hidden: 12288, heads: 96}, plan: {}, measured: {fits: "
      "false}}\n");
  const auto rows = validate({(scratch.path() / "mine.yaml").string()}, path);
  const ValidationSummary summary = summary_of(rows);
  CHECK(summary.all.rows == 1);
  CHECK(summary.unpredicted == 1);
  CHECK(summary.memory_by_source.at("mine").rows == 1);
  CHECK(summary.memory_macro == summary.memory_by_source.at("mine").mape);
  CHECK(summary.too_large_called_fitting == 0);
  bool told = false;
  for (const auto& row : rows)
    told |= row.id == "bad" && row.error.find("tp 3") != std::string::npos;
  CHECK(told);
  CHECK_THROWS_AS(validate({(scratch.path() / "none.yaml").string()}, path),
                  costmodel::ConfigError);
  // A folder may hold what its runs refer to; named itself, such a file is a fault.
  scratch.write("clusters.yaml", "clusters: {}\n");
  std::vector<std::string> left_out;
  CHECK(validate({scratch.path().string()}, path, &left_out).size() == rows.size());
  REQUIRE(left_out.size() == 1);
  CHECK(left_out.front().find("clusters.yaml") != std::string::npos);
  CHECK_THROWS_AS(validate({(scratch.path() / "clusters.yaml").string()}, path),
                  costmodel::ConfigError);
}

TEST_CASE("a run is of its stack as it was in the year of its source") {
  const program::Scratch scratch;
  const auto stack_of = [&](const std::string& source, const std::string& stack) {
    scratch.write("runs.yaml", "source: " + source +
                                   "\nruns:\n- id: one\n  model: llama-3-8b\n"
                                   "  cluster: {base: dgx-h100, devices: 8}\n"
                                   "  training: {global_batch: 8, sequence: 8192, stack: " +
                                   stack + "}\n  plan: {zero: 3}\n  measured: {iteration_s: 1}\n");
    const auto runs = read_evidence_runs({(scratch.path() / "runs.yaml").string()});
    REQUIRE(runs.size() == 1);
    return scenario_of(runs.front(), path).training.stack.name;
  };
  CHECK(stack_of("{title: torchtitan benchmarks (Dec 2024)}", "torchtitan") == "torchtitan-2024");
  CHECK(stack_of("{title: torchtitan benchmarks (June 2025)}", "torchtitan") == "torchtitan");
  CHECK(stack_of("{title: a card of 2024, date: 2026-11-26}", "torchtitan") == "torchtitan");
  CHECK(stack_of("{title: a card of 20240 units}", "torchtitan") == "torchtitan");
  CHECK(stack_of("{title: of 2024}", "{base: torchtitan, loss: flash}") == "torchtitan-2024");
  CHECK(stack_of("{title: of 2024}", "megatron-core-2025") == "megatron-core-2025");
}

TEST_CASE("a run of whose open keys no choice fits is predicted, and called too large") {
  const program::Scratch scratch;
  scratch.write(
      "mine.yaml",
      "source: {title: mine}\n"
      "runs:\n"
      "- id: open\n"
      "  model: gpt3-175b\n"
      "  cluster: {base: selene, devices: 8}\n"
      "  training: {global_batch: 16, sequence: 2048, precision: bf16, stack: megatron-2021}\n"
      "  plan: {tp: 8, micro_batch: auto, recompute: auto}\n"
      "  measured: {iteration_s: 100}\n");
  const auto rows = validate({(scratch.path() / "mine.yaml").string()}, path);
  const ValidationSummary summary = summary_of(rows);
  CHECK(summary.unpredicted == 0);
  CHECK(summary.all.rows == 1);
  CHECK(summary.fitted_called_too_large == 1);
  REQUIRE(rows.front().quantity == "iteration_s");
  CHECK(rows.front().predicted > 0);
}

TEST_CASE("a run that its source contradicts is listed and counts in no figure") {
  const program::Scratch scratch;
  const std::string run =
      "  model: {kind: gpt, layers: 4, hidden: 512, heads: 8, vocab: 51200}\n"
      "  cluster: {base: selene, devices: 4}\n"
      "  training: {global_batch: 16, sequence: 512, precision: fp16, stack: megatron-2021}\n"
      "  measured: {iteration_s: 0.1}\n";
  scratch.write("mine.yaml",
                "source: {title: mine}\nruns:\n- id: good\n" + run +
                    "- id: odd\n  contradicted: 9 samples a second in 5 s are not 16\n" + run);
  const auto rows = validate({scratch.path().string()}, path);
  const ValidationSummary summary = summary_of(rows);
  CHECK(summary.contradicted == 1);
  CHECK(summary.all.rows == 1);
  CHECK(summary.fits.fitted == 1);
  const std::string text = validation_report(rows, false, {});
  CHECK(text.find("in no figure: 1.") != std::string::npos);
  CHECK(text.find("are not 16") != std::string::npos);
}

TEST_CASE("memory that a source leaves open is listed and counts in no figure") {
  const program::Scratch scratch;
  const std::string run =
      "  model: {kind: gpt, layers: 4, hidden: 512, heads: 8, vocab: 51200}\n"
      "  cluster: {base: selene, devices: 4}\n"
      "  training: {global_batch: 16, sequence: 512, precision: fp16, stack: megatron-2021}\n"
      "  measured: {iteration_s: 0.1, peak_memory_bytes: 5 GB}\n";
  scratch.write("mine.yaml", "source: {title: mine}\nruns:\n- id: stated\n" + run +
                                 "- id: recipe\n  unstated: recomputation\n" + run +
                                 "- id: open\n  plan: {micro_batch: auto}\n" + run);
  const auto rows = validate({scratch.path().string()}, path);
  const ValidationSummary summary = summary_of(rows);
  CHECK(summary.all.rows == 3);  // times count
  CHECK(summary.memory.rows == 1);
  CHECK(summary.fits.fitted == 2);  // whether any micro-batch fits is an answer
  CHECK(summary.unstated == 1);
  std::vector<std::string> why;
  for (const ValidationRow& row : rows)
    if (row.quantity == "peak_memory_bytes") why.push_back(row.unstated);
  CHECK(why == std::vector<std::string>{"", "recomputation", "micro_batch"});
  CHECK(validation_report(rows, false, {}).find("all that memory depends on") != std::string::npos);
}

TEST_CASE("what a source leaves open is what its framework does by default") {
  const program::Scratch scratch;
  scratch.write(
      "mine.yaml",
      "source: {title: mine}\n"
      "defaults:\n"
      "  model: {kind: llama, layers: 16, hidden: 512, heads: 8, vocab: 51200}\n"
      "  cluster: {base: torchtitan-h100-sxm-96gb-500w, devices: 8}\n"
      "  training: {global_batch: 32, sequence: 512, precision: bf16, stack: torchtitan}\n"
      "  measured: {iteration_s: 0.1}\n"
      "runs:\n"
      "- {id: open, plan: {pp: 4, micro_batch: auto, schedule: interleaved, vpp: auto}}\n"
      "- {id: told, plan: {pp: 4, micro_batch: 4, schedule: interleaved, vpp: 2}}\n");
  std::map<std::string, double> predicted;
  for (const auto& row : validate({scratch.path().string()}, path))
    if (row.predicted_time()) predicted[row.id] = row.predicted;
  REQUIRE(predicted.size() == 2);
  CHECK(predicted["open"] == predicted["told"]);
}

// What the model reaches on the published runs, rounded up: no change may lose it unseen.
TEST_CASE("published runs are predicted as well as they ever were") {
  const auto rows = validate({SHARDPLAN_SOURCE_DIR "/configs/evidence"}, path);
  const ValidationSummary summary = summary_of(rows);
  const std::map<std::string, double> bounds{{"alpa-e2e", 8.0},
                                             {"alpa-intra", 4.1},
                                             {"bigscience-a100", 5.3},
                                             {"bigscience-v100-1b3", 7.0},
                                             {"bloom-176b", 7.3},
                                             {"bridge-skills", 8.1},
                                             {"dgx-cloud", 2.8},
                                             {"dlperf-v100", 6.7},
                                             {"fms-fsdp", 6.6},
                                             {"internevo-flops", 3.0},
                                             {"internevo-throughput", 2.6},
                                             {"korthikanti-2022", 6.1},
                                             {"llama-3", 8.6},
                                             {"llm-foundry", 5.3},
                                             {"lora-mlperf", 3.5},
                                             {"megascale", 2.5},
                                             {"megatron-bridge", 5.3},
                                             {"megatron-core-2024", 4.7},
                                             {"megatron-examples-llama3", 1.3},
                                             {"megatron-readme-2020", 6.0},
                                             {"megatron-readme-jan2021", 1.9},
                                             {"megatron-sc21", 4.2},
                                             {"mlperf-405b", 1.2},
                                             {"mlperf-v6-deepseek-v3", 9.6},
                                             {"moe-deepseek-v3", 3.4},
                                             {"moe-gpt-oss-120b", 5.3},
                                             {"moe-nemotron-3", 6.9},
                                             {"moe-qwen3", 8.6},
                                             {"moe-simumax", 3.0},
                                             {"nemo-2022-a100", 3.7},
                                             {"nemo-2024-h100-fp8", 3.9},
                                             {"nemo-2025", 8.2},
                                             {"simumax-b200", 2.5},
                                             {"torchtitan-2024", 5.9},
                                             {"torchtitan-async-tp", 10.6},
                                             {"ultrascale", 7.4},
                                             {"vtrain-multi", 7.6},
                                             {"vtrain-single", 7.7},
                                             {"xtuner-h800", 19.5},
                                             {"zero-bubble", 5.0}};
  for (const auto& [source, bound] : bounds) {
    CAPTURE(source);
    REQUIRE(summary.by_source.count(source) == 1);
    CHECK(summary.by_source.at(source).rows > 0);
    CHECK(summary.by_source.at(source).mape <= bound);
  }
  CHECK(summary.by_source.size() == bounds.size());
  CHECK(summary.macro_mape <= 5.8);
  CHECK(summary.all.rows >= 1498);
  // Eleven of them are Llama 2 70B with LoRA on 8 H100, by 0.3 of 79.1 GiB.
  CHECK(summary.fitted_called_too_large <= 21);
  CHECK(summary.too_large_called_fitting <= 2);
  // The runs to which constants are fitted.
  double fitted = 0;
  const std::set<std::string> parts_alone{"bridge-skills", "moe-gpt-oss-120b", "moe-nemotron-3",
                                          "mlperf-v6-deepseek-v3", "xtuner-h800"};
  for (const auto& [source, bound] : bounds)
    fitted += parts_alone.count(source) > 0 ? 0 : summary.by_source.at(source).mape;
  CHECK(fitted / static_cast<double>(bounds.size() - parts_alone.size()) <= 5.2);
  // SimuMax's were within 2.1 while Transformer Engine's loss kernel was taken for flash-attn's,
  // which keeps the gradient of the logits beside them: where its runs were called 3 % too small,
  // that hid it.
  const std::map<std::string, double> memory{{"bridge-skills", 3.1},   {"moe-simumax", 0.6},
                                             {"simumax-b200", 0.6},    {"bigscience-a100", 4.3},
                                             {"alpa-e2e", 16.2},       {"alpa-intra", 5.3},
                                             {"torchtitan-2024", 8.6}, {"zero-bubble", 2.7}};
  for (const auto& [source, bound] : memory) {
    CAPTURE(source);
    CHECK(summary.memory_by_source.at(source).mape <= bound);
  }
}

}  // namespace validation_test
