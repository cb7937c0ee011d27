#include "runtime/training/synthetic_data.hpp"

#include "runtime/cpu/random.hpp"

namespace runtime {

void fill_tokens(std::uint64_t seed, std::int64_t first_sample, std::int64_t sequences,
                 std::int64_t sequence, std::int64_t vocab, bool labels,
                 std::span<std::int64_t> ids) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < sequences; ++i) {
    for (std::int64_t position = 0; position < sequence; ++position) {
      ids[at++] = cpu::token(seed, static_cast<std::uint64_t>(first_sample + i),
                             position + (labels ? 1 : 0), static_cast<std::int32_t>(vocab));
    }
  }
}

}  // namespace runtime
