// The register of Hugging Face families: what their config.json calls the sizes of a model.
// Internal to costmodel.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

// A family is rows, in the form that HfTranslation reads, and at most one hook for what the rows
// leave out. `rows` begins with those that it shares with others; later ones win.
struct HfFamily {
  std::string_view model_type, architectures;  // any of them names it
  std::array<std::string_view, 5> rows;
  void (*hook)(HfTranslation& file) = nullptr;

  HfModel read(const Value& map) const;
};

std::span<const HfFamily> hf_families();

// The family as which an unknown model_type is read on request: a llama, or where the map names a
// number of experts a mixture of them.
HfFamily hf_guess(const Value& map, std::string_view model_type);

}  // namespace costmodel
