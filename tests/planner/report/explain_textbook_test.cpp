// The textbook's formulas, worked out by hand for a scenario.
#include "planner/report/explain_textbook.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace explain_textbook_test {

using costmodel::Seconds;
using fixtures::contains;
using planner::Explained;

namespace {

const std::string scenario =
    "model: gpt3-6.7b\ncluster: {base: dgx-a100, devices: 16}\n"
    "training: {global_batch: 512, sequence: 2048, precision: bf16, stack: megatron-2021}\n"
    "plan: {tp: 2, pp: 4, dp: 2, micro_batch: 1}\n";

struct Worked {
  costmodel::Scenario s;
  costmodel::Evaluator evaluator;
  costmodel::Estimate estimate;
  std::vector<Explained> rows;

  explicit Worked(const std::string& yaml)
      : s(scenarios::read(yaml)),
        evaluator(s.model, s.cluster, s.training),
        estimate(evaluator.estimate(resolve_plan(s))),
        rows(planner::textbook(estimate, s, evaluator)) {}
  const Explained& row(const std::string& symbol) const {
    const auto at = std::ranges::find(rows, symbol, &Explained::symbol);
    REQUIRE_MESSAGE(at != rows.end(), symbol);
    return *at;
  }
};

}  // namespace

TEST_CASE("three corollaries: t_f / p, m (t_f + t_b), m p (t_f + t_b)") {
  const Worked w(scenario);
  Seconds whole, forward, backward;
  for (const Seconds t : w.estimate.stage_forward) {
    whole += t;
    forward = max(forward, t);
  }
  for (const Seconds t : w.estimate.stage_backward) backward = max(backward, t);
  CHECK(w.row("t_f / p").value == format_seconds(whole / 4));
  CHECK(w.row("m (t_f + t_b)").value == format_seconds(256 * (forward + backward)));
  CHECK(w.row("m p (t_f + t_b)").value == format_seconds(256 * 4 * (forward + backward)));
}

TEST_CASE("of virtual stages a rank's chunks count together, and a bubble of (p - 1)/v turns") {
  std::string interleaved = scenario;
  interleaved.replace(interleaved.find("micro_batch: 1"), 14,
                      "micro_batch: 1, vpp: 2, schedule: interleaved");
  const Worked w(interleaved);
  Seconds forward, backward;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    forward = max(forward, w.estimate.stage_forward[rank] + w.estimate.stage_forward[rank + 4]);
    backward = max(backward, w.estimate.stage_backward[rank] + w.estimate.stage_backward[rank + 4]);
  }
  CHECK(w.row("m (t_f + t_b)").value == format_seconds(256 * (forward + backward)));
  CHECK(w.row("b 1 (this plan)").value == format_seconds(257.5 * (forward + backward)));
  CHECK(contains(w.row("b 1 (this plan)").from, "(256/1 + 1.5) x"));
  CHECK(256 * (forward + backward) <= w.estimate.pipeline);
}

TEST_CASE("the curve of b is (b'/b + p - 1) (t_f(b) + t_b(b)), and names this plan") {
  const Worked w(scenario);
  const Seconds step = *std::ranges::max_element(w.estimate.stage_forward) +
                       *std::ranges::max_element(w.estimate.stage_backward);
  CHECK(w.row("b'").value == "256");
  CHECK(w.row("b 1 (this plan)").value == format_seconds((256 + 3) * step));
  CHECK(contains(w.row("b 2").from, "(256/2 + 3) x"));
  int rows = 0;
  for (const Explained& row : w.rows) rows += row.group == "choice of b" ? 1 : 0;
  CHECK(rows == 1 + 7);  // b' and 1 to 64
}

TEST_CASE("ZeRO 2 leaves an eighth of the paper's 16 bytes") {
  const Worked w(scenario);
  CHECK(w.row("an eighth").value == "9 B");  // 2 + 14 / 2
  CHECK(contains(w.row("ZeRO 3").from, "50.0 %"));
  // fp16 weights and gradients, fp32 master weights and moments: all 16, an eighth with many ranks.
  CHECK(contains(w.row("ZeRO 2").from, "12.5 % with many ranks"));
}

TEST_CASE("trade-offs keep the number of devices, and skip what is not valid") {
  const Worked w(scenario);
  CHECK(w.row("this plan").value == format_seconds(w.estimate.iteration));
  for (const char* symbol :
       {"t 4, p 2", "p 8, t 1", "p 8, d 1", "d 4, p 2", "t 4, d 1", "d 4, t 1"})
    CHECK(w.row(symbol).value.size() > 2);
  CHECK(w.row("p : d").value == "1.2 %");  // (8 - 2) / 512
  // 8 b s h (t - 1)/t of 2 bytes, 8 layers: 8 x 0.5 x 8 x 16 MiB
  CHECK(w.row("t : p").value == "512 MiB");
  const Worked one(
      "model: codeparrot-110m\ncluster: {base: dgx-a100, devices: 1}\n"
      "training: {global_batch: 8, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
      "plan: {}\n");
  for (const Explained& row : one.rows) CHECK_FALSE(contains(row.symbol, "t 2"));
}

}  // namespace explain_textbook_test
