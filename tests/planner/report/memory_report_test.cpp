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

}  // namespace memory_report_test
