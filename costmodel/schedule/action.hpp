// One action of a pipeline schedule, and its text: "2F0" is stage 2's forward of micro-batch 0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace costmodel {

enum class ActionKind : std::uint8_t {
  forward,
  backward,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  weight_gradient
};

struct Action {
  ActionKind kind;
  int stage;  // virtual stage that computes, or whose result is transferred
  int micro_batch;
  // Runs together with the action before it in the list: the two are one cell, which starts when
  // all of its actions can and ends them all at once. Never true of transfers.
  bool beside = false;
  bool operator==(const Action&) const = default;
};

using Actions = std::vector<Action>;
using ActionsByRank = std::vector<Actions>;

// The actions of the cell that begins at `at`: one, unless those behind it run beside it.
std::span<const Action> cell_at(const Actions& list, std::size_t at);

// F, B, W, SEND_F, RECV_F, SEND_B, RECV_B: PyTorch's words, but for B, which is the input gradient
// where there are weight gradients, W.
std::string to_text(const Action& action);
// The actions of a cell, joined: "0F3+7B2+7W2".
std::string to_text(std::span<const Action> cell);
// "forward 3 of stage 2", "send gradients 3 of stage 2": the field's words. `split`: a backward is
// the input gradient only.
std::string in_words(const Action& action, bool split);
// Nothing when the text is no action, or a number too large for an int.
std::optional<Action> parse_action(std::string_view text);

// The parts of a text "[stage][word][micro-batch]", whatever the word.
struct ActionText {
  int stage;
  std::string_view word;
  int micro_batch;
};
std::optional<ActionText> split_action(std::string_view text);

}  // namespace costmodel
