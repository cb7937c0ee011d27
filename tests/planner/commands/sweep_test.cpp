// Points.
#include "planner/commands/sweep.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

namespace sweep_test {

using namespace planner;
using fixtures::config_error;
using fixtures::contains;

namespace {

Swept swept(const std::vector<std::string>& over, const std::vector<std::string>& set = {}) {
  Options options;
  options.over = over;
  options.assignments = set;
  const auto path = fixtures::configs();
  return sweep(find_config(path, "scenarios", "tiny-gpt-cpu", {}), path, options);
}

Table sweep_of(const std::vector<std::string>& over, const std::vector<std::string>& set = {}) {
  return swept(over, set).table;
}

}  // namespace

TEST_CASE("the last axis varies fastest; points that break a rule say so") {
  const Table table = sweep_of({"pp=1,2", "micro_batch=1,2,3"}, {"plan.dp=2", "cluster.devices=4"});
  REQUIRE(table.rows.size() == 6);
  CHECK(table.columns[0].title == "pp");
  CHECK(table.columns[1].title == "micro_batch");
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows[0][0] == "1");
  CHECK(table.rows[2][1] == "3");
  CHECK(table.rows[3][0] == "2");
  CHECK(contains(table.rows[0].back(), "cluster has 4"));
  CHECK(table.rows[3].back() == "");
  CHECK(contains(table.rows[5].back(), "not divisible"));
}

TEST_CASE("an axis that no point can read is an error, one that some points can is a row") {
  CHECK(contains(config_error([] { sweep_of({"tpp=1,2"}); }), "did you mean 'tp'?"));
  const Table table = sweep_of({"training.precision=fp32,bf16"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].back() == "");
  CHECK(contains(table.rows[1].back(), "has no bf16 rate"));
  CHECK(swept({"micro_batch=1,x"}).unreadable == 1);
  CHECK(swept({"pp=1,3"}).unreadable == 0);  // breaks a rule, and is read
}

TEST_CASE("an override of --set counts, and an axis wins over it") {
  const Table table =
      sweep_of({"micro_batch=2"}, {"plan.micro_batch=1", "training.global_batch=32"});
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0][2] == "8");  // m = 32 / (2 · 2)
}

TEST_CASE("shards keep their points, and the sweep without shards has them all as in one run") {
  const program::Scratch scratch;
  Options options;
  options.over = {"cluster.devices=1,2,4", "micro_batch=1,2,x"};
  options.assignments = {"plan={}"};
  const auto swept_now = [&] {
    const auto path = fixtures::configs();
    return sweep(find_config(path, "scenarios", "tiny-gpt-cpu", {}), path, options);
  };
  const Swept complete = swept_now();
  options.journal = scratch.path() / "points";
  std::size_t rows = 0;
  for (const std::size_t k : {2, 1}) {
    options.shard = {k, 2};
    rows += swept_now().table.rows.size();
  }
  CHECK(rows == complete.table.rows.size());
  options.shard = {};
  const Swept joined = swept_now();
  CHECK(joined.table.rows == complete.table.rows);
  CHECK(joined.notes == complete.notes);
  CHECK(joined.unreadable == complete.unreadable);
  CHECK(scratch.read("points/journal.jsonl").empty());  // nothing was priced again
}

TEST_CASE("which plan a point has is told where the scenario does not say") {
  const auto place_of_plan = [](const Table& table) { return table.columns.size() - 2; };
  CHECK(swept({"micro_batch=1,2"}).notes.empty());
  CHECK(sweep_of({"micro_batch=1,2"}).columns[place_of_plan(sweep_of({"micro_batch=1"}))].title ==
        "fits_probability");

  const Swept without = swept({"tp=1,2"}, {"plan={}"});
  REQUIRE(without.notes.size() == 1);
  CHECK(contains(without.notes[0], "the scenario has no plan"));
  const std::size_t plan = place_of_plan(without.table);
  CHECK(without.table.columns[plan].title == "plan");
  CHECK(contains(without.table.rows[0][plan], "t 1 "));
  CHECK(contains(without.table.rows[1][plan], "t 2 "));
}

TEST_CASE("with plan: auto every point is searched, beside what is swept") {
  const Swept searched = swept({"tp=1,2,4"}, {"plan=auto"});
  REQUIRE(searched.notes.size() == 1);
  CHECK(contains(searched.notes[0], "were searched at every point"));
  const Table& table = searched.table;
  const std::size_t plan = table.columns.size() - 2, seconds = 3;
  REQUIRE(table.columns[seconds].title == "iteration_s");
  const Table usual = sweep_of({"tp=1,2,4"}, {"plan={}"});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(table.rows[i].back() == "");
    CHECK(contains(table.rows[i][plan], "t " + table.rows[i][0] + " "));
    CHECK(std::stod(table.rows[i][seconds]) <= std::stod(usual.rows[i][seconds]));
  }
  CHECK(std::stod(table.rows[0][seconds]) < std::stod(usual.rows[0][seconds]));
  CHECK(contains(config_error([] { sweep_of({"micro_batch=1,2"}, {"plan=automatic"}); }), "plan"));
}

}  // namespace sweep_test
