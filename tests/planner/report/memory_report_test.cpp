// The memory of an iteration as a table.
#include "planner/report/memory_report.hpp"

#include <doctest/doctest.h>

namespace memory_report_test {

using namespace costmodel;
using namespace planner;

namespace {

MemorySample sample(MemorySample::Pass pass, LayerKind layer, int number, double gib,
                    std::string_view op) {
  MemorySample own;
  own.pass = pass;
  own.layer = layer;
  own.number = number;
  own.op = op;
  own.held[0] = Bytes(1024.0 * 1024 * 1024);
  own.held[3] = Bytes((gib - 1) * 1024 * 1024 * 1024);
  own.allocated = Bytes(gib * 1024 * 1024 * 1024);
  own.reserved = own.allocated;
  return own;
}

MemoryTrace some_trace() {
  using Pass = MemorySample::Pass;
  MemoryTrace trace;
  trace.samples = {sample(Pass::forward, LayerKind::embedding, 0, 2, "token embedding"),
                   sample(Pass::forward, LayerKind::block, 1, 3, "Q, K, V"),
                   sample(Pass::forward, LayerKind::block, 2, 4, "activation"),
                   sample(Pass::backward, LayerKind::block, 2, 8, "activation"),
                   sample(Pass::step, LayerKind::block, 0, 1, "")};
  trace.peak = 3;
  trace.allocated = trace.reserved = trace.samples[3].allocated;
  return trace;
}

}  // namespace

TEST_CASE("consecutive layers of a kind are a row, at their fullest") {
  const Table rows = memory_rows(some_trace());
  REQUIRE(rows.rows.size() == 4);
  CHECK(rows.rows[1] == std::vector<std::string>{"forward", "0", "0", "2 block", "activation",
                                                 "1.0", "0.0", "0.0", "3.0", "0.0", "4.0", "4.0"});
  CHECK(rows.rows[3][3] == "optimizer");
}

TEST_CASE("the report marks the peak and names which operator of which layer it is at") {
  const std::string text = memory_report(some_trace(), Bytes(16.0 * 1024 * 1024 * 1024), {});
  CHECK(text.find("WWAAAAAAAAAAAAAAAA peak") != std::string::npos);
  CHECK(text.find(
            "8 GiB in the backward of layer 2 of stage 0, block, micro-batch 0, at activation") !=
        std::string::npos);
  CHECK(memory_report({}, Bytes(1), {}).find("Not known") != std::string::npos);
}

TEST_CASE("passes that repeat in a pipeline's steady state stand once, with their micro-batches") {
  using Pass = MemorySample::Pass;
  MemoryTrace trace;
  const auto add = [&trace](Pass pass, std::int64_t micro_batch, double gib) {
    trace.samples.push_back(sample(pass, LayerKind::block, 0, gib, "activation"));
    trace.samples.back().micro_batch = micro_batch;
  };
  add(Pass::forward, 0, 2);
  add(Pass::forward, 1, 3);
  for (std::int64_t k = 0; k < 5; ++k) {
    add(Pass::backward, k, 4);
    add(Pass::forward, k + 2, 3.5);
  }
  add(Pass::backward, 5, 4);
  add(Pass::backward, 6, 3);
  trace.peak = 4;  // the second backward
  trace.allocated = trace.reserved = trace.samples[4].allocated;
  const std::string text = memory_report(trace, Bytes(16.0 * 1024 * 1024 * 1024), {});
  const auto lines = [&text](const char* words) {
    int count = 0;
    for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      ++count;
    return count;
  };
  CHECK(lines("\n  forward ") == 3);
  CHECK(lines("\n  backward ") == 3);
  CHECK(lines("0 to 4") == 1);
  CHECK(lines("2 to 6") == 1);
  CHECK(lines(" peak\n") == 1);
  CHECK(memory_rows(trace).rows.size() == trace.samples.size());  // the table has all
}

}  // namespace memory_report_test
