#include "planner/traces/nsight_reader.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/run_program.hpp"

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>

#include "planner/traces/trace_file.hpp"

namespace nsight_reader_test {

using fixtures::contains;
using program::Scratch;

namespace {

// The tables of an export, with one product that PyTorch's range around it names.
constexpr const char* tables = R"sql(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO StringIds VALUES (1, 'nvjet_tst'), (2, 'cudaLaunchKernel'), (3, 'iteration 0');
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100');
CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (0, 1000, NULL, 3, 9),
  (10, 100, 'aten::mm, seq = 12, sizes = [[8, 4], [4, 2]]', NULL, 9), (5, NULL, 'mark', NULL, 9);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, correlationId INTEGER,
  nameId INTEGER, globalTid INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (20, 30, 77, 2, 9);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, streamId INTEGER,
  correlationId INTEGER, demangledName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (200, 700, 7, 77, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, streamId INTEGER,
  correlationId INTEGER, bytes INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (700, 800, 7, 78, 4096);
)sql";

std::string database(const Scratch& scratch, const char* statements) {
  const std::string file = (scratch.path() / "t.sqlite").string();
  sqlite3* made = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &made) == SQLITE_OK);
  CHECK(sqlite3_exec(made, statements, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(made);
  return file;
}

}  // namespace

TEST_CASE("an export's kernels are joined with the ranges around their launches") {
  const Scratch scratch;
  const auto trace = planner::read_trace(database(scratch, tables));
  CHECK(trace.profiler == "Nsight Systems");
  CHECK(trace.device == "NVIDIA H100");
  REQUIRE(trace.kernels.size() == 2);
  CHECK(trace.kernels[0].length == 500);
  REQUIRE(trace.kernels[0].launcher != planner::no_operator);
  const auto& call = trace.operators[trace.kernels[0].launcher];
  REQUIRE(call.outer != planner::no_operator);
  CHECK(trace.text(trace.operators[call.outer].name) == "aten::mm");
  CHECK(trace.text(trace.operators[call.outer].sizes) == "[[8,4],[4,2]]");
  REQUIRE(trace.iterations.size() == 1);
  CHECK(trace.iterations[0].end == 1000);
  CHECK(trace.kernels[1].bytes == 4096);
}

TEST_CASE("kernels of several devices are counted, whose ranks one file holds") {
  const Scratch scratch;
  CHECK(planner::read_trace(database(scratch, tables)).devices == 1);
  const Scratch other;
  const std::string two = std::string(tables) +
                          "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN deviceId INTEGER;"
                          "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0;"
                          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (200, 700, 7, 77, 1, 1);";
  CHECK(planner::read_trace(database(other, two.c_str())).devices == 2);
}

TEST_CASE("a database of something else is refused") {
  const Scratch scratch;
  const std::string file = database(scratch, "CREATE TABLE photos (id INTEGER);");
  CHECK(contains(fixtures::config_error([&] { planner::read_nsight(file); }),
                 "has no table of CUDA's kernels"));
}

}  // namespace nsight_reader_test
#else
TEST_CASE("without SQLite an export is refused") {
  CHECK(fixtures::contains(fixtures::config_error([] { planner::read_nsight("t.sqlite"); }),
                           "built without SQLite"));
}
#endif
