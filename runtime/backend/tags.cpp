#include "runtime/backend/tags.hpp"

#include <fmt/format.h>

#include "costmodel/base/error.hpp"

namespace runtime {

namespace {

// Layout: three bits of kind, then twelve of stage and sixteen of micro-batch, or 28 of a number.
// MPI guarantees no more than 31 bits.
enum Kind { forward, backward, collective, control };

constexpr int number_bits = 28;
constexpr int batch_bits = 16;

int pack(Kind kind, int number) {
  return (kind << number_bits) | (number & ((1 << number_bits) - 1));
}

int pack(Kind kind, int stage, int micro_batch) {
  SHARDPLAN_CHECK(stage >= 0 && stage < (1 << (number_bits - batch_bits)));
  return pack(kind, (stage << batch_bits) | (micro_batch & ((1 << batch_bits) - 1)));
}

}  // namespace

int forward_tag(int stage, int micro_batch) { return pack(forward, stage, micro_batch); }
int backward_tag(int stage, int micro_batch) { return pack(backward, stage, micro_batch); }
int without_micro_batch(int tag) { return tag & ~((1 << batch_bits) - 1); }
int collective_tag(int number) { return pack(collective, number); }
int control_tag(int number) { return pack(control, number); }

int end_tag() { return control_tag(-1); }
int question_tag() { return control_tag(-2); }
int answer_tag() { return control_tag(-3); }
int given_up_tag() { return control_tag(-4); }
int farewell_tag() { return control_tag(-5); }

std::string tag_text(int tag) {
  if (tag == end_tag()) return "the word that it has ended";
  const int number = tag & ((1 << number_bits) - 1);
  const int stage = number >> batch_bits;
  const int micro_batch = number & ((1 << batch_bits) - 1);
  switch (tag >> number_bits) {
    case forward:
      return fmt::format("the forward result of stage {}, micro-batch {}", stage, micro_batch);
    case backward:
      return fmt::format("the backward result of stage {}, micro-batch {}", stage, micro_batch);
    case collective: return fmt::format("a message of collective {}", number);
    case control: return fmt::format("control message {}", number);
    default: return fmt::format("message {}", tag);
  }
}

}  // namespace runtime
