#include "costmodel/model/block.hpp"

#include <fmt/format.h>

#include <array>

namespace costmodel {

namespace {

using enum Mixer;

constexpr std::array mixers{
    MixerRow{none, 0, "", "", false, ""},
    MixerRow{attention, 'F', "", "", false, "full attention"},
    MixerRow{window, 'S', "", " with a window", false, "the sliding window"},
    MixerRow{delta, 'D', "delta net", "", true, "a gated delta net"},
    MixerRow{chunked, 'C', "", " with chunks", false, "attention within a chunk"},
    MixerRow{sparse, 'I', "", " with an indexer", false, "attention to what an indexer chooses"},
    MixerRow{kimi_delta, 'K', "Kimi delta", "", true, "Kimi delta attention"},
    MixerRow{lightning, 'L', "lightning", "", true, "lightning attention"},
    MixerRow{scan, 'M', "Mamba", "", true, "a Mamba scan"},
    MixerRow{parallel, 'P', "", " with a scan", true, "attention and a Mamba-2 scan in parallel"},
    MixerRow{rwkv, 'R', "RWKV", "", true, "RWKV-7"},
    MixerRow{short_conv, 'V', "convolution", "", true, "a short convolution between gates (LFM2)"},
    MixerRow{encoder, 0, "", "", false, ""},
    MixerRow{decoder, 0, "", "", false, ""}};

constexpr std::array letters{PatternLetter{'M', {scan, FeedForward::none}, "a Mamba-2 scan"},
                             PatternLetter{'*', {attention, FeedForward::none}, "attention"},
                             PatternLetter{'-', {none, FeedForward::dense}, "an MLP"},
                             PatternLetter{'E', {none, FeedForward::experts}, "experts"},
                             PatternLetter{'G', {delta, FeedForward::none}, "a gated delta net"}};
static_assert(letters.size() <= most_blocks);

static_assert([] {
  for (std::size_t i = 0; i < mixers.size(); ++i)
    if (mixers[i].mixer != static_cast<Mixer>(i)) return false;
  return true;
}());

// "F full attention, S the sliding window".
template <class Rows>
std::string listed(const Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    if (row.letter == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", row.letter, row.help);
  }
  return text;
}

}  // namespace

std::span<const MixerRow> mixer_rows() { return mixers; }

const MixerRow& row_of(Mixer mixer) { return mixers[static_cast<std::size_t>(mixer)]; }

std::span<const PatternLetter> pattern_letters() { return letters; }

std::string attention_letters_help() { return listed(mixers); }

std::string pattern_letters_help() { return listed(letters); }

std::string attention_letters() {
  std::string all;
  for (const MixerRow& row : mixers)
    if (row.letter != 0) all += row.letter;
  return all;
}

std::string describe(const Block& block) {
  const MixerRow& row = row_of(block.mixer);
  if (block.mixer == encoder) return "encoder";
  if (block.mixer == decoder) return "decoder";
  if (block.mixer == none) return block.feed_forward == FeedForward::dense ? "MLP" : "experts";
  const bool alone = block.feed_forward == FeedForward::none;
  const std::string_view rest = alone && !row.name.empty()                 ? ""
                                : alone                                    ? "attention"
                                : block.feed_forward == FeedForward::dense ? "block"
                                                                           : "mixture-of-experts";
  const bool both = !row.name.empty() && !rest.empty();
  return fmt::format("{}{}{}{}", row.name, both ? " " : "", rest, row.suffix);
}

}  // namespace costmodel
