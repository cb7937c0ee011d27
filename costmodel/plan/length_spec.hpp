// How long texts are, in tokens: prompts and answers of requests, samples of a fine-tuning.
#pragma once

#include <cstdint>
#include <string_view>

#include "costmodel/config/map_reader.hpp"

namespace costmodel {

// With `p95` lengths are log-normal, with `most` uniform between `least` and `most`, else all
// alike.
struct LengthSpec {
  double mean = 0;
  double p95 = 0;
  double least = 0, most = 0;
};

// Random numbers that are the same on every machine: SplitMix64 (Steele et al. 2014, "Fast
// splittable pseudorandom number generators").
class Draws {
 public:
  double uniform();  // in (0, 1)
  double normal();   // Box and Muller 1958

 private:
  std::uint64_t state_ = 1;
};

// Tokens of one text: a whole number, at least 1.
double drawn(const LengthSpec& length, Draws& draws);

// The length that a part `share` of all, between 0 and 1, is not longer than; as drawn, rounded.
double length_quantile(const LengthSpec& length, double share);

// Of the standard normal distribution.
double normal_quantile(double share);

// Reads a number, also as 8k, {mean, p95} or {min, max}. Throws ConfigError.
LengthSpec read_length(const Value& written, std::string_view name);
inline constexpr const char* length_help =
    "1 to 10,000,000, {mean, p95} (log-normal) or {min, max} (uniform)";

}  // namespace costmodel
