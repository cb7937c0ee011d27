#include "costmodel/schedule/action.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace costmodel {

namespace {

// In the order of ActionKind.
constexpr std::array<std::string_view, 7> words{"F",      "B",      "SEND_F", "RECV_F",
                                                "SEND_B", "RECV_B", "W"};

}  // namespace

std::string to_text(const Action& action) {
  return fmt::format("{}{}{}", action.stage, words[static_cast<std::size_t>(action.kind)],
                     action.micro_batch);
}

std::string in_words(const Action& action, bool split) {
  static constexpr std::array<std::string_view, words.size()> long_words{
      "forward",        "backward",          "send activations", "receive activations",
      "send gradients", "receive gradients", "weight gradient"};
  const bool input = split && action.kind == ActionKind::backward;
  return fmt::format("{} {} of stage {}",
                     input ? "input gradient" : long_words[static_cast<std::size_t>(action.kind)],
                     action.micro_batch, action.stage);
}

std::string to_text(std::span<const Action> cell) {
  std::string text;
  for (const Action& action : cell) text += (text.empty() ? "" : "+") + to_text(action);
  return text;
}

std::span<const Action> cell_at(const Actions& list, std::size_t at) {
  std::size_t end = at + 1;
  while (end < list.size() && list[end].beside) ++end;
  return {list.data() + at, end - at};
}

std::optional<ActionText> split_action(std::string_view text) {
  const auto letter = text.find_first_not_of("0123456789");
  const auto digits = text.find_last_not_of("0123456789");
  if (letter == 0 || letter == std::string_view::npos || digits + 1 == text.size()) return {};
  ActionText parts{0, text.substr(letter, digits + 1 - letter), 0};
  const auto stage = std::from_chars(text.data(), text.data() + letter, parts.stage);
  const auto batch =
      std::from_chars(text.data() + digits + 1, text.data() + text.size(), parts.micro_batch);
  if (stage.ec != std::errc() || batch.ec != std::errc()) return {};  // too large for an int
  return parts;
}

std::optional<Action> parse_action(std::string_view text) {
  const auto parts = split_action(text);
  if (!parts) return {};
  const auto* const word = std::ranges::find(words, parts->word);
  if (word == words.end()) return {};
  return Action{static_cast<ActionKind>(word - words.begin()), parts->stage, parts->micro_batch};
}

}  // namespace costmodel
