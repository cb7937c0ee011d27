// Facts of runs, and the pages that `validate` prints.
#include "planner/accuracy/scorecard.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/accuracy/json_accuracy.hpp"
#include "planner/accuracy/scorecard_html.hpp"
#include "planner/accuracy/scorecard_svg.hpp"
#include "planner/accuracy/scorecard_tables.hpp"
#include "planner/report/plan_report.hpp"
#include "tests/golden.hpp"

namespace scorecard_test {

using namespace planner;

namespace {

const std::vector<ValidationRow>& published() {
  static const auto rows =
      validate({SHARDPLAN_SOURCE_DIR "/configs/evidence"}, {{SHARDPLAN_SOURCE_DIR "/configs"}});
  return rows;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// "" when every tag of the markup that needs one has its end, else the first that does not.
std::string unbalanced(const std::string& markup) {
  std::vector<std::string> open;
  for (std::size_t at = markup.find('<'); at != std::string::npos; at = markup.find('<', at + 1)) {
    if (markup.compare(at, 2, "<!") == 0 || markup.compare(at, 5, "<meta") == 0) continue;
    const std::size_t end = markup.find('>', at);
    if (end == std::string::npos) return markup.substr(at, 20);
    const bool closing = markup[at + 1] == '/';
    const std::size_t from = at + (closing ? 2 : 1);
    const std::string name = markup.substr(from, markup.find_first_of(" >/\n", from) - from);
    if (closing) {
      if (open.empty() || open.back() != name) return "</" + name;
      open.pop_back();
    } else if (markup[end - 1] != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : open.back();
}

}  // namespace

TEST_CASE("parallelism names the axes above one") {
  costmodel::ParallelPlan plan;
  CHECK(parallelism_of(plan) == "1 device");
  plan.dp = 8;
  CHECK(parallelism_of(plan) == "dp");
  plan.zero = 3;
  CHECK(parallelism_of(plan) == "fsdp");
  plan.tp = 2;
  plan.pp = 4;
  CHECK(parallelism_of(plan) == "tp+pp+fsdp");
}

TEST_CASE("every predicted run is in one line of each table") {
  const ValidationSummary s = summary_of(published());
  for (const auto* figures : {&s.by_source, &s.by_device, &s.by_framework, &s.by_parallelism,
                              &s.by_precision, &s.by_setting}) {
    int rows = 0;
    for (const auto& [name, own] : *figures) {
      CHECK(name != "");
      rows += own.rows;
    }
    CHECK(rows == s.all.rows);
  }
  CHECK(s.fits.fitted + s.unstated >= s.all.rows);
  CHECK(s.fits.called_too_large == 0);  // of the runs whose plan is stated
  CHECK(s.fits.did_not_fit > 0);
  CHECK(s.memory.rows > 0);
}

TEST_CASE("intervals hold nine runs in ten; orders are mostly right") {
  const Scorecard card = scorecard_of(published());
  CHECK(card.unseen == nullptr);
  CHECK(card.summary.all.coverage > 85);
  CHECK(card.rank.groups.size() > 50);
  CHECK(card.rank.mean_spearman > 0.6);
  CHECK(card.rank.pairs_right_pct > 75);
  // What is reached, as in "published runs are predicted as well as they ever were".
  const ChoiceFigures first = figures_of(card.rank.choices);
  CHECK(first.workloads >= 181);
  CHECK(first.right_pct >= 80.5);
  CHECK(first.right_pct > 2 * first.by_chance_pct);
  // An eighth of it in one pair of two containers, another in XTuner's plans with real routing.
  CHECK(first.mean_loss_pct < 3.9);
  for (const auto& bin : card.rank.calibration) {
    CAPTURE(bin.from);
    if (bin.pairs >= 50)
      CHECK(bin.right_pct == doctest::Approx(100 * bin.mean_probability).epsilon(0.25));
  }
}

TEST_CASE("the summary in JSON has every grouping") {
  const auto json = nlohmann::json::parse(validation_json(published()))["summary"];
  for (const auto* key : {"by_source", "by_device", "by_framework", "by_parallelism",
                          "by_precision", "by_setting", "memory_by_source", "fits_by_source"}) {
    CAPTURE(key);
    CHECK(json[key].size() > 2);
  }
  CHECK(json["by_device"]["a100-sxm4-80gb"].contains("mape_pct"));
  CHECK(json["rank"]["groups"] == json["rank"]["by_group"].size());
  CHECK(json["rank"]["spearman"].is_number());
  CHECK(json["rank"]["pairs_right_pct"].is_number());
  CHECK(json["rank"]["ratio_error_pct"].is_number());
  CHECK(json["interval_score_pct"].is_number());
  const auto& first = json["rank"]["first_choice"];
  CHECK(first["by_workload"].size() == first["workloads"]);
  std::size_t right = 0;
  for (const auto& choice : first["by_workload"]) right += choice["right"] ? 1 : 0;
  CHECK(first["right"] == right);
  CHECK(first["by_workload"][0]["predicted_fastest"].get<std::string>().find("t ") == 0);
  CHECK(json["left_out"].is_null());
}

// The table is of some rows if it has as many runs and their error.
TEST_CASE("what is known of unseen runs stands first, if the table is of these runs") {
  const auto& rows = published();
  const ValidationSummary summary = summary_of(rows);
  costmodel::ResidualTable table;
  table.kinds[0].count = {summary.all.rows - 60, 30};
  table.kinds[1].count = {60, 4};
  table.kinds[0].covered = 89;
  table.kinds[1].covered = 95;
  table.unseen.in_sample.sources = summary.macro_mape;
  table.unseen.source = {7.46, 7, 8, 8.31};
  table.unseen.family = {9.46, 8, 12.04, 10};
  for (const auto& [source, figures] : summary.by_source)
    table.unseen.by_source[source] = {2 * figures.mape, 90};
  REQUIRE(scorecard_of(rows, &table).unseen == &table);
  const std::string text = validation_report(rows, false, {}, &table);
  CHECK(text.find("Unseen runs: mean error over sources 9.5 % with a run's model family") == 0);
  CHECK(text.find("(dense 8.0 %, experts 12.0 %)") != std::string::npos);
  CHECK(text.find("7.5 % its source.") != std::string::npos);
  CHECK(text.find("89.0 % of dense models, 95.0 % of experts") != std::string::npos);
  for (const auto& line : golden::lines_of(text)) CHECK(display_width(line) <= 100);
  const auto left_out = nlohmann::json::parse(validation_json(rows, &table))["summary"]["left_out"];
  CHECK(left_out["by_source"].size() == summary.by_source.size());
  CHECK(left_out["source"]["macro_mape_pct"] == doctest::Approx(7.46));
  CHECK(left_out["by_kind"]["experts"]["interval_coverage_pct"] == 95);
  CHECK(left_out["interval_coverage_pct"].get<double>() == doctest::Approx(89.25).epsilon(0.001));
  CHECK(unbalanced(scorecard_html(rows, false, "", &table)) == "");
  table.unseen.in_sample.sources += 0.1;
  CHECK(scorecard_of(rows, &table).unseen == nullptr);
}

TEST_CASE("text stays within 100 columns, and shows runs when asked or few") {
  const auto& rows = published();
  const std::string text = validation_report(rows, false, {});
  for (const auto& line : golden::lines_of(text)) {
    CAPTURE(line);
    CHECK(display_width(line) <= 100);
  }
  CHECK(text.find("Every run") == std::string::npos);
  const std::string every = validation_report(rows, true, {});
  CHECK(every.find("Every run") != std::string::npos);
  CHECK(every.find("Each workload's, the largest loss first") != std::string::npos);
  const std::vector<ValidationRow> few(rows.begin(), rows.begin() + 4);
  CHECK(validation_report(few, false, {}).find("Every run") != std::string::npos);
}

TEST_CASE("the picture has a point in each panel for every run, and names it") {
  auto rows = published();
  const std::string svg = scatter_svg(rows);
  const auto timed = static_cast<std::size_t>(summary_of(rows).all.rows);
  CHECK(count(svg, "<title>") == timed);
  CHECK(count(svg, "class=\"bar\"") == timed);
  CHECK(unbalanced(svg) == "");
  CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
  CHECK(count(svg, "nan") == count(svg, "nano"));  // of nanotron and Nemotron Nano, no number
  CHECK(svg == scatter_svg(rows));
  for (auto& row : rows) row.error = "no";
  CHECK(scatter_svg(rows).find("no run could be predicted") != std::string::npos);
}

TEST_CASE("the page stands alone") {
  const std::string notes = "## Known\n\n- one <thing>\n- two\n\nA paragraph\nof two lines.\n";
  const std::string html = scorecard_html(published(), false, notes);
  CHECK(unbalanced(html) == "");
  CHECK(count(html, "http:") + count(html, "https:") == 1);  // the name of SVG itself
  CHECK(count(html, "<script") + count(html, "<link") + count(html, "src=") == 0);
  CHECK(html.find("<h2>Known</h2>") != std::string::npos);
  CHECK(html.find("<li>one &lt;thing&gt;</li>") != std::string::npos);
  CHECK(html.find("<p>A paragraph of two lines.</p>") != std::string::npos);
}

}  // namespace scorecard_test
