// An action's text reads back, and nothing else reads as one.
#include "costmodel/schedule/action.hpp"

#include <doctest/doctest.h>

namespace action_test {

using namespace costmodel;

TEST_CASE("every kind of action reads back") {
  for (int kind = 0; kind < 7; ++kind) {
    const Action action{static_cast<ActionKind>(kind), 12, 3};
    CHECK(parse_action(to_text(action)) == action);
  }
  CHECK(to_text(Action{ActionKind::recv_backward, 4, 0}) == "4RECV_B0");
}

TEST_CASE("what is no action") {
  for (const char* text : {"", "F", "0F", "F0", "0X0", "0F0 ", "0F-1", "0F1.5", "99999999999F0",
                           "0F99999999999", "0f0", "00", "0 F0"})
    CHECK_FALSE(parse_action(text).has_value());
  CHECK(split_action("3I14")->word == "I");  // a word of PyTorch's, told apart by its reader
  CHECK(split_action("3I14")->micro_batch == 14);
}

}  // namespace action_test
