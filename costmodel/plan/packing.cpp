#include "costmodel/plan/packing.hpp"

#include <algorithm>
#include <bit>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <vector>

namespace costmodel {

namespace {

// Sequences that are being filled, by the room that they have left: a tree of maxima, whose first
// leaf with enough room is found in as many steps as it is deep.
class OpenSequences {
 public:
  OpenSequences(std::size_t most, double room)
      : leaves_(std::bit_ceil(most)), room_(2 * leaves_, room) {}

  std::size_t first_with(double tokens) const {
    std::size_t at = 1;
    while (at < leaves_) at = 2 * at + (room_[2 * at] >= tokens ? 0 : 1);
    return at - leaves_;
  }
  void take(std::size_t sequence, double tokens) {
    std::size_t at = sequence + leaves_;
    for (room_[at] -= tokens; at > 1; at /= 2)
      room_[at / 2] = std::max(room_[at], room_[at ^ std::size_t{1}]);
  }

 private:
  std::size_t leaves_;
  std::vector<double> room_;
};

struct Filled {
  double tokens = 0, squares = 0;
};

// Every sequence but the last ones, which later samples would fill, has been offered the others'.
std::vector<Filled> packed(const std::vector<double>& samples, double room) {
  OpenSequences open(samples.size(), room);
  std::vector<Filled> sequences;
  for (const double tokens : samples) {
    const std::size_t at = open.first_with(tokens);
    open.take(at, tokens);
    if (at >= sequences.size()) sequences.resize(at + 1);
    sequences[at].tokens += tokens;
    sequences[at].squares += tokens * tokens;
  }
  return sequences;
}

}  // namespace

Packing packing_of(const LengthSpec& lengths, std::int64_t sequence, bool is_packed) {
  constexpr double sequences = 512, most_samples = 100'000;
  const auto room = static_cast<double>(sequence);
  const double expected = std::max(1.0, room / std::min(room, lengths.mean));
  const double count = is_packed ? std::min(most_samples, sequences * expected) : most_samples / 8;
  Draws draws;
  std::vector<double> samples(static_cast<std::size_t>(count));
  double tokens = 0, squares = 0;
  for (double& sample : samples) {
    sample = std::min(room, drawn(lengths, draws));
    tokens += sample;
    squares += sample * sample;
  }
  Packing packing{.lengths = lengths, .packed = is_packed};
  if (!is_packed) {
    packing.filled = tokens / count / room;
    return packing;
  }
  std::vector<Filled> all = packed(samples, room);
  const auto packs = static_cast<double>(all.size());
  packing.samples = count / packs;
  packing.filled = tokens / packs / room;
  packing.attended = squares / packs / room;
  double variance = 0;
  for (const Filled& one : all) variance += std::pow(one.squares / room - packing.attended, 2);
  packing.spread = std::sqrt(variance / packs);
  return packing;
}

double longest_excess(const Packing& packing, std::int64_t sequence, std::int64_t ranks,
                      double sequences) {
  if (packing.attended == 0 || ranks < 2) return 0;
  const auto n = static_cast<double>(ranks);
  const double share = (n - 0.375) / (n + 0.25);  // of them below the largest (Blom)
  const double normal = std::numbers::sqrt2 * boost::math::erf_inv(2 * share - 1);
  const double most = static_cast<double>(sequence) / packing.attended - 1;
  return std::min(most, normal * packing.spread / packing.attended / std::sqrt(sequences));
}

}  // namespace costmodel
