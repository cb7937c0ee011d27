// What all devices derive from an OpCall in the same way: the qkv layout, the random streams of
// dropout, and the parts of tensors that concatenate several vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "runtime/backend/device.hpp"
#include "runtime/cpu/dropout.hpp"
#include "runtime/cpu/head_layout.hpp"

namespace runtime {

inline cpu::HeadLayout layout_of(const Place& place) {
  return {place.sequences, place.sequence, place.heads, place.kv_heads, place.head_dim};
}

inline cpu::RowPositions positions_of(const Place& place) {
  return {place.sequence, place.first_row, place.position};
}

inline double softmax_scale(const Place& place) {
  return 1 / std::sqrt(static_cast<double>(place.head_dim));
}

// Each dropout site of a layer draws from its own random stream.
enum class DropoutSite : std::uint64_t { embedding, attention, residual, last_residual };

inline std::uint64_t stream_of(const Place& place, DropoutSite site) {
  return place.layer * 4 + static_cast<std::uint64_t>(site);
}

inline DropoutSite residual_site(const OpCall& call) {
  return call.node.site == costmodel::Site::mlp_residual ? DropoutSite::last_residual
                                                         : DropoutSite::residual;
}

// The dropout key of a rank's tokens; rows count over all samples since training began.
inline cpu::DropoutKey token_key(const Place& place, DropoutSite site, std::int64_t cols) {
  return {place.seed, stream_of(place, site), place.first_sample * place.sequence + place.first_row,
          0, cols};
}

// The dropout of attention probabilities [sequences, heads, s, s]. Calls visit(shape, key, first
// element, elements) once per sequence, whose heads are contiguous in the unsharded tensor.
template <class Visit>
void for_each_sequence(const Place& p, const costmodel::Dropout& op, Visit visit) {
  const std::int64_t rows = p.heads * p.sequence;
  for (std::int64_t i = 0; i < p.sequences; ++i) {
    const std::int64_t sample = p.first_sample + i;
    const std::int64_t first = (sample * p.all_heads + p.first_head) * p.sequence;
    const cpu::DropoutKey key{p.seed, stream_of(p, DropoutSite::attention), first, 0, op.cols};
    visit(costmodel::Dropout{rows, op.cols}, key, static_cast<std::size_t>(i * rows * op.cols),
          static_cast<std::size_t>(rows * op.cols));
  }
}

// Whether this normalises query and key heads; its vectors hold the queries' part, then the keys'.
inline bool is_qk_norm(const costmodel::Norm& op) { return op.gains > 1; }

// Three concatenated vectors: maximum, sum of exponentials, target logit (later the loss).
struct LogitStatistics {
  std::span<float> maximum, sum, target;
};

inline LogitStatistics logit_statistics(const OpCall& call) {
  const auto all = call.saved[2].floats();
  const std::size_t rows = all.size() / 3;
  return {all.first(rows), all.subspan(rows, rows), all.last(rows)};
}

// The number of the rank's columns that are real tokens. The rest is vocabulary padding, which is
// masked out of the softmax and never trained.
inline std::int64_t real_columns(const Place& place, const costmodel::CrossEntropy& op) {
  return std::clamp<std::int64_t>(place.vocab - place.first_token, 0, op.cols);
}

}  // namespace runtime
