// Where launches are not replayed, and how that is told.
#include "runtime/devices/graph_rules.hpp"

#include <doctest/doctest.h>

namespace graph_rules_test {

using runtime::graphs_note;
using runtime::graphs_refused;

namespace {

bool note_has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("launches are replayed on whole GPUs, and refused with a remedy elsewhere") {
  CHECK(graphs_refused({.on_gpus = true}) == "");
  CHECK(note_has(graphs_refused({.on_gpus = false}), "use --backend cuda"));
  CHECK(note_has(graphs_refused({.on_gpus = true, .virtual_devices = 2}),
                 "leave --virtual-devices out"));
  CHECK(note_has(graphs_refused({.on_gpus = true, .reducing_thread = true}),
                 "set overlap.overlap_grad_reduce: false"));
}

TEST_CASE("what came of it is told in numbers, with what was never captured") {
  CHECK(graphs_note({.captured = 4, .replayed = 12, .done = 6}) ==
        "launches of rank 0: 4 graphs captured and replayed 12 times, 6 stretches launched one "
        "kernel after the other");
  CHECK(note_has(graphs_note({.refused = "it waits"}), "; some are never captured: it waits"));
}

}  // namespace graph_rules_test
