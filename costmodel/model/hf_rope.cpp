#include "costmodel/model/hf_rope.hpp"

#include <algorithm>
#include <string>

#include "costmodel/base/escape.hpp"
#include "costmodel/model/model_spec.hpp"

namespace costmodel {

namespace {

// The map of transformers 5; of kinds of layers that of full attention. Null: none.
const Value* rope_parameters(HfTranslation& file) {
  const Value* all = file.reader_.optional("rope_parameters");
  if (all == nullptr || !all->is_map()) return nullptr;
  const Value* full = all->find("full_attention");
  return full != nullptr && full->is_map() ? full : all;
}

// The scaling that rope_scaling, or the map of transformers 5, has; reports what has no key.
void put_scaling(HfTranslation& file) {
  const Value* scaling = file.reader_.optional("rope_scaling");
  if (scaling == nullptr) scaling = rope_parameters(file);
  if (scaling == nullptr || !scaling->is_map()) return;
  MapReader inner(*scaling, "rope_scaling");
  std::string type = inner.text("rope_type").value_or(inner.text("type").value_or("default"));
  if (type == "su") type = "longrope";  // as Phi-3's first files call it
  if (type == "default" || type == "none") return;
  constexpr double llama3_factor = 8;
  const auto factor = inner.number("factor", Dimension::count, 1, 1e4);
  const bool usable = factor || type == "llama3" || type == "longrope";
  if (std::ranges::count(rope_scaling_names, type) == 0 || !usable) {
    return file.report(
        fmt::format("its rope_scaling {} is left out{}: it costs nothing, but an exported script "
                    "trains without "
                    "it",
                    shortened(type), usable ? "" : ", which has no factor"));
  }
  file.put("rope_scaling_type", type, "rope_scaling");
  if (factor || type == "llama3")
    file.put("rope_scaling_factor", factor.value_or(llama3_factor), "rope_scaling");
  const auto copy = [&](const char* ours, const char* theirs) {
    if (const auto value = inner.number(theirs, Dimension::count, 0, 1e9))
      file.put(ours, *value, "rope_scaling");
  };
  copy("rope_original_positions", "original_max_position_embeddings");
  if (const auto length =
          file.reader_.number("original_max_position_embeddings", Dimension::count, 1, 1e9);
      length && inner.optional("original_max_position_embeddings") == nullptr)
    file.put("rope_original_positions", *length, "original_max_position_embeddings");
  // The class reads these with its own kind of scaling alone.
  if (type == "llama3") {
    copy("rope_low_freq_factor", "low_freq_factor");
    copy("rope_high_freq_factor", "high_freq_factor");
  } else if (type == "yarn") {
    copy("rope_beta_fast", "beta_fast");
    copy("rope_beta_slow", "beta_slow");
    copy("rope_mscale", "mscale");
    copy("rope_mscale_all_dim", "mscale_all_dim");
  }
  for (const char* theirs : {"attention_factor", "short_factor", "long_factor"}) {
    if (inner.optional(theirs) != nullptr) {
      file.report(
          fmt::format("{} of its rope_scaling is left out: there is no key for it", theirs));
    }
  }
}

}  // namespace

void put_rotation(HfTranslation& file) {
  const bool rotates = file.text("positions") == "rotary";
  const Value* const fresh = rotates ? rope_parameters(file) : nullptr;
  const auto settle = [&](const char* ours, const char* theirs, double usual) {
    const std::string read = file.text(ours);
    double value =
        read.empty() ? usual : read_number(scalar_value(read), ours, Dimension::count, 0, 1e12);
    if (fresh != nullptr) {
      MapReader inner(*fresh, "rope_parameters");
      value = inner.number(theirs, Dimension::count, 1e-3, 1e12).value_or(value);
    }
    if (!rotates || value == usual) return file.drop(ours);
    file.put(ours, value, file.reader_.optional(theirs) != nullptr ? theirs : "rope_parameters");
  };
  const ModelSpec usual;
  settle("rotary_base", "rope_theta", usual.rotary_base);
  settle("rotary_percent", "partial_rotary_factor", usual.rotary_percent);
  if (rotates) put_scaling(file);
}

}  // namespace costmodel
