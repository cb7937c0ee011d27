// A layer of a model is a block: a mixer, which lets tokens see one another, and a feed-forward,
// which works on each of them; either may be missing. A model is a sequence of blocks, written as
// one letter a layer (ModelSpec::attention_pattern, ModelSpec::layer_pattern).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace costmodel {

enum class Mixer : std::uint8_t {
  none,
  attention,   // all tokens before it
  window,      // a sliding window of them (Mistral, arXiv:2310.06825, section 2)
  delta,       // a gated delta net (Yang et al. 2024, arXiv:2412.06464)
  chunked,     // the tokens of its own chunk (Llama 4)
  sparse,      // those that an indexer chooses (DeepSeek-V3.2, arXiv:2512.02556, section 2)
  kimi_delta,  // Kimi delta attention (Kimi Linear, arXiv:2510.26692, section 3)
  lightning,   // linear attention with a decay a head (MiniMax-01, arXiv:2501.08313, section 2.2)
  scan,        // a state-space scan: Mamba-2, or Mamba-1 (ModelSpec::dt_rank)
  parallel,    // attention and a scan of one input, summed (Falcon-H1, arXiv:2507.22448)
  rwkv,        // RWKV-7's time mixing (arXiv:2503.14456, section 4)
  short_conv,  // a short convolution between two gates (LFM2; transformers, Lfm2ShortConv)
  encoder,     // attention without a mask, of an encoder's layers
  decoder      // attention, then attention to the encoder's output
};
enum class FeedForward : std::uint8_t { none, dense, experts };

struct Block {
  Mixer mixer = Mixer::attention;
  FeedForward feed_forward = FeedForward::dense;
  auto operator<=>(const Block&) const = default;
};

// Kinds of blocks that a model may have.
inline constexpr std::size_t most_blocks = 8;

// A mixer and the letter that a pattern has for it; 0: none. `recurrent`: it keeps a state, and no
// cache of keys.
struct MixerRow {
  Mixer mixer;
  char letter;
  std::string_view name;    // alone, and before the name of a feed-forward
  std::string_view suffix;  // after it
  bool recurrent;
  std::string_view help;  // what the letter means
};
std::span<const MixerRow> mixer_rows();  // in the order of the enumeration
const MixerRow& row_of(Mixer mixer);

// A letter of a hybrid's pattern, where each layer is one part of a block (Nemotron-H,
// arXiv:2504.03624, section 2.1; Megatron's --hybrid-layer-pattern).
struct PatternLetter {
  char letter;
  Block block;
  std::string_view help;
};
std::span<const PatternLetter> pattern_letters();

// "F full attention, S ...", of either kind of pattern, and their letters alone.
std::string attention_letters_help();
std::string pattern_letters_help();
std::string attention_letters();

// "block", "mixture-of-experts with a window", "delta net", "MLP".
std::string describe(const Block& block);

}  // namespace costmodel
