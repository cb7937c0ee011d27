// The memory of an iteration as a picture.
#include "planner/page/memory_picture.hpp"

#include <doctest/doctest.h>

namespace memory_picture_test {

using namespace costmodel;

TEST_CASE("a column a pass, as high as what tensors take, with the operator under the pointer") {
  CHECK(planner::memory_html({}, Bytes(10)) == "");
  MemoryTrace trace;
  for (int i = 0; i < 2; ++i) {
    MemorySample own;
    own.op = i == 0 ? "logits" : "cross-entropy";
    own.begin = Seconds(i);
    own.end = Seconds(i + 1);
    own.held[static_cast<std::size_t>(MemoryKind::activations)] = Bytes(100 * (i + 1));
    own.allocated = own.reserved = Bytes(100 * (i + 1));
    trace.samples.push_back(own);
  }
  trace.peak = 1;
  trace.allocated = trace.reserved = Bytes(200);
  const std::string html = planner::memory_html(trace, Bytes(400));
  const auto has = [&html](const char* text) { return html.find(text) != std::string::npos; };
  // Full height 1,000 is 1.05 x 400 bytes; each pass half of the width 10,000.
  CHECK(has("<rect class=\"activations\" x=\"0\" y=\"761.9\" width=\"5000\" height=\"238.1\"/>"));
  CHECK(
      has("<rect class=\"activations\" x=\"5000\" y=\"523.8\" width=\"5000\" height=\"476.2\"/>"));
  CHECK(has("<title>forward of layer 0 of stage 0, block, micro-batch 0, cross-entropy: 200 B"));
  CHECK(has("class=\"limit\""));
  CHECK(has("The peak is 200 B"));
}

}  // namespace memory_picture_test
