// Towers: stacks of encoder layers that turn images or sound into tokens of a language model. A
// tower has a stem, which makes tokens of patches or frames, layers like those of any model, and a
// projector, whose result takes the place of tokens of the sequence.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/model_spec.hpp"

namespace costmodel {

// The order in which a model has its towers.
enum class TowerInput : std::uint8_t { vision, audio };
inline constexpr std::array<std::string_view, 2> tower_names{"vision", "audio"};

// What a stem or a projector does to the tokens of an input, one after another.
enum class StepKind : std::uint8_t {
  linear,       // a product to `size` columns
  convolution,  // ... of `taps` neighbouring tokens, with a bias, of which one in `stride` stays
  gated,        // a gated product to `size` columns and back, without biases (GLM-4.5V)
  tokens,       // `size` learned tokens more (a class token)
  drop,         // ... which are left out again
  positions,    // a table of `size` rows is added
  layernorm,
  rmsnorm,
  gelu,
  silu,
  merge,  // `size` tokens become one, as wide as all of them (pixel shuffle, spatial merge)
  pool    // ... one as wide as each, their mean
};

struct TowerStep {
  StepKind kind = StepKind::linear;
  std::int64_t size = 0, taps = 0, stride = 1;
  bool bias = false;
  bool operator==(const TowerStep&) const = default;
};

std::string steps_help();
std::optional<TowerStep> parse_step(const std::string& text);
std::string to_string(const TowerStep& step);

struct TowerSpec {
  TowerInput input = TowerInput::vision;
  ModelSpec encoder;  // its layers: bidirectional blocks of attention and MLP
  // Of an image: the side of a patch in pixels, colours, and frames that one patch has (Qwen2-VL
  // repeats an image). Of sound: bins of the mel spectrum, and its frames a second.
  std::int64_t patch = 14, channels = 3, frames = 1;
  std::int64_t mel_bins = 128, frames_per_second = 100;
  std::int64_t usual_size = 0;  // side of an image in pixels, or seconds of a clip
  std::vector<TowerStep> stem, projector;
  // Further projectors of what layers in between make, added to the first layers of the language
  // model (DeepStack, arXiv:2406.04334, as in Qwen3-VL).
  std::int64_t branches = 0;
  std::vector<TowerStep> branch;
  // All layers but `full_layers` attend within windows of so many tokens; 0: none has.
  std::int64_t window = 0, full_layers = 0;
  // What a checkpoint has beyond the operators here, or less: vectors of `hidden` numbers of every
  // layer (InternVL's scales of both branches: 2), and no bias of keys beside those of queries
  // (Whisper).
  std::int64_t layer_vectors = 0;
  bool key_bias = true;

  std::int64_t windowed_layers() const { return window > 0 ? encoder.layers - full_layers : 0; }
  // Columns of what the stem begins with: all numbers of a patch, or those of a frame.
  std::int64_t input_width() const {
    return input == TowerInput::vision ? channels * patch * patch * frames : mel_bins;
  }
  // Its patches or frames, of an image of `size` x `size` pixels or a clip of as many seconds.
  std::int64_t input_tokens(std::int64_t size) const;
};

struct Towers {
  std::vector<TowerSpec> all;
};
// Empty where a model reads nothing but text.
std::span<const TowerSpec> towers_of(const ModelSpec& model);

// What a training gives the towers, for each sequence; and serving would.
struct TowerUse {
  std::array<std::int64_t, 2> number{1, 1};  // images, clips
  std::array<std::int64_t, 2> size{0, 0};    // pixels of a side, seconds; 0: the model's
  std::int64_t number_of(const TowerSpec& t) const {
    return number[static_cast<std::size_t>(t.input)];
  }
  std::int64_t size_of(const TowerSpec& t) const {
    const std::int64_t own = size[static_cast<std::size_t>(t.input)];
    return own > 0 ? own : t.usual_size;
  }
};

// A step with its sizes: the tokens of one input, and the columns of each.
struct StepShape {
  TowerStep step;
  std::int64_t rows = 0, columns = 0;  // that it reads
  std::int64_t out_rows = 0, out_columns = 0;
  double parameters = 0;
};
std::vector<StepShape> shapes_of(std::span<const TowerStep> steps, std::int64_t rows,
                                 std::int64_t columns);

// Tokens of one input: within the layers, and of the language model.
struct TowerTokens {
  std::int64_t input = 0, encoder = 0, language = 0;
};
TowerTokens tokens_of(const TowerSpec& tower, std::int64_t size);

// Parameters of a tower's operators: all, and those of its projectors; and how many more a
// checkpoint has.
double tower_parameters(const TowerSpec& tower);
double unpriced_parameters(const TowerSpec& tower);
double projector_parameters(const TowerSpec& tower);

}  // namespace costmodel
