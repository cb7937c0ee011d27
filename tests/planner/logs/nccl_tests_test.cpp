// Logs of nccl-tests read, refused and turned into microbenchmarks.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/logs/nccl_tests.hpp"
#include "tests/golden.hpp"
#include "tests/run_program.hpp"

namespace nccl_tests_test {

using costmodel::ConfigError;
using namespace planner;

namespace {

std::string log_file(const std::string& name) {
  return std::string(SHARDPLAN_SOURCE_DIR) + "/tests/planner/support/nccl/" + name;
}

const std::string ranks =
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid 1 on a device  0 [0000:04:00] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid 1 on a device  1 [0000:05:00] NVIDIA A100\n";
const std::string starting = "# Collective test starting: all_reduce_perf\n";
const std::string header =
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
const std::string row = "1024 256 float sum -1 10.0 0.10 0.10 0 11.0 0.09 0.09 0\n";

std::string fault(const std::string& text) {
  try {
    read_nccl_text(text, "x.log");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string json_fault(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  try {
    read_nccl_json(text.replace(at, what.size(), by), "x.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string text_of(const std::string& name) {
  std::ifstream in(log_file(name));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a log of two nodes: ranks, nodes, device, both halves of a row") {
  const auto tables = read_nccl_tests(log_file("two-nodes.txt"));
  REQUIRE(tables.size() == 1);
  const auto& table = tables.front();
  CHECK(table.op == "all_reduce");
  CHECK(table.device == "NVIDIA H100 80GB HBM3");
  CHECK(table.ranks == 16);
  CHECK(table.nodes == 2);
  REQUIRE(table.rows.size() == 5);
  const auto& last = table.rows.back();
  CHECK(last.bytes == 8589934592.0);
  CHECK(last.out_of_place->time_us == 47535);
  CHECK(last.out_of_place->bus_gb_s == 338.82);
  CHECK(last.in_place->time_us == 47743);
}

TEST_CASE("several tables, tags of mpirun, lines of NCCL between the rows, old rank lines") {
  const auto tables = read_nccl_tests(log_file("two-tables.txt"));
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].op == "all_gather");
  CHECK(tables[0].ranks == 2);
  CHECK(tables[0].device == "Tesla V100-SXM2-16GB");
  REQUIRE(tables[0].rows.size() == 2);
  CHECK(tables[0].rows[1].in_place->time_us == 12);
  CHECK(tables[1].op == "send");
  CHECK(tables[1].ranks == 3);
  REQUIRE(tables[1].rows.size() == 1);  // nothing is sent in the other
  CHECK(tables[1].rows[0].bytes == 64);
}

TEST_CASE("the report that --json writes") {
  const auto tables = read_nccl_tests(log_file("report.json"));
  REQUIRE(tables.size() == 1);
  const auto& table = tables.front();
  CHECK(table.op == "reduce_scatter");
  CHECK(table.ranks == 8);  // two processes of four devices, the first of each listed
  CHECK(table.nodes == 2);
  CHECK(table.measured == "2026-03-04");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].out_of_place->bus_gb_s == 2.8);
  CHECK_FALSE(table.rows[1].out_of_place);
  CHECK(table.rows[1].in_place->time_us == 24);
}

TEST_CASE("what a log lacks is said with its place") {
  CHECK(read_nccl_text(starting + ranks + header + row, "x.log").size() == 1);
  CHECK(fault("") == "x.log: holds no table of nccl-tests; its header begins: # size count type");
  CHECK(fault(starting + ranks + header) ==
        "x.log:5:1: the table has no rows; the log is cut off after it");
  CHECK(fault(starting + header + row) ==
        "x.log:2:1: the log does not say which ranks ran the table; keep its lines '# Rank ... on "
        "HOST device ...'");
  CHECK(fault(starting + ranks + header + row.substr(0, 45)) ==
        "x.log:6:45: the row ends after 11 of 13 columns; the log is cut off here: remove the row, "
        "or give the whole log");
  CHECK(fault(starting + ranks + header + "1024 256 float sum -1 fast 1 1 0 1 1 1 0\n") ==
        "x.log:6:23: time: 'fast' is not a number; rows of nccl-tests hold numbers here");
  CHECK(fault(starting + ranks + header + "1024 256 float sum -1 inf 1 1 0 1 1 1 0\n")
            .find("'inf'") != std::string::npos);
  CHECK(fault(starting + ranks + header + "1024 256 float sum -1 10 1 1 7 1 1 1 0\n") ==
        "x.log:6:30: 7 values came out wrong; a run that computes wrong is no measurement; repair "
        "it first");
}

TEST_CASE("a log that does not name its collective") {
  const std::string all_reduce = "1024 256 float sum -1 10 2 2 0 10 2 2 0\n";
  CHECK(read_nccl_text(ranks + header + all_reduce, "x.log").front().op == "all_reduce");
  const std::string half = "1024 256 float sum -1 10 2 1 0 10 2 1 0\n";
  CHECK(fault(ranks + header + half) ==
        "x.log:4:1: the log does not name the collective; keep the line '# Collective test "
        "starting: ..._perf' or the command");
}

TEST_CASE("faults of a JSON report") {
  const std::string good = text_of("report.json");
  CHECK(json_fault(good, "\"nwrong\":0.000000", "\"nwrong\":3.000000").starts_with("x.json:1:"));
  CHECK(json_fault(good, "\"time\":20.48", "\"cpu_time\":20.48").find("host only") !=
        std::string::npos);
  CHECK(json_fault(good, "\"devices\"", "\"devics\"").find("devices") != std::string::npos);
  CHECK(json_fault(good, "\"results\":[{", "\"results\":[{{").starts_with("x.json:1:"));
  CHECK(json_fault(good, "\"time\":20.480000", "\"time\":\"nan\"").find("time") !=
        std::string::npos);
  CHECK(json_fault(good, good.substr(good.size() - 200), "").starts_with("x.json:"));
}

TEST_CASE("import writes microbenchmarks: YAML whose lines are JSON") {
  const program::Scratch scratch;
  for (const std::string name : {"two-nodes.txt", "two-tables.txt", "report.json"}) {
    CAPTURE(name);
    const auto done = program::run({"import", "nccl-tests", log_file(name)}, scratch);
    CHECK(done.status == 0);
    CHECK(done.err == "");
    const std::string stem = std::filesystem::path(name).stem().string();
    CHECK(golden::compare("nccl_" + stem + ".yaml", done.out) == "");
    const auto again =
        program::run({"import", "nccl-tests", log_file(name), "--format", "json"}, scratch);
    const auto list = nlohmann::json::parse(again.out);
    CHECK(list.size() == costmodel::parse_yaml(done.out, "import").items.size());
  }
  const auto missing = program::run({"import", "nccl-tests", "none.txt"}, scratch);
  CHECK(missing.status == 2);
  CHECK(missing.err == "none.txt: no such file; check the path\n");
}

TEST_CASE("calibrate hands over to the program beside shardplan, or says that it is missing") {
  const program::Scratch scratch;
  const auto there = program::run({"calibrate", "--backend", "gpu"}, scratch);
  CHECK(there.status == 2);
  CHECK(there.err.find("there is no backend gpu; choose cpu or cuda") != std::string::npos);
  const auto after = program::run({"--quiet", "calibrate"}, scratch);
  CHECK(after.status == 2);
  CHECK(after.err.find("flags stand before 'calibrate'") != std::string::npos);
}

}  // namespace nccl_tests_test
