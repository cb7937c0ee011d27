#include "costmodel/plan/packing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>
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
  double samples = 0, tokens = 0, squares = 0;
};

// Without the last tenth, which later samples would fill.
std::vector<Filled> packed(const std::vector<double>& samples, double room) {
  OpenSequences open(samples.size(), room);
  std::vector<Filled> sequences;
  for (const double tokens : samples) {
    const std::size_t at = open.first_with(tokens);
    open.take(at, tokens);
    if (at >= sequences.size()) sequences.resize(at + 1);
    ++sequences[at].samples;
    sequences[at].tokens += tokens;
    sequences[at].squares += tokens * tokens;
  }
  sequences.resize(std::max<std::size_t>(1, sequences.size() * 9 / 10));
  return sequences;
}

// Of so many samples a sequence that they fill it, and that what differs between sequences is the
// spread of l² - c l, c = E l² / E l, for their tokens are as many.
void fill_with_many(const std::vector<double>& samples, double room, Packing& packing) {
  double tokens = 0, squares = 0, spread = 0;
  for (const double l : samples) {
    tokens += l;
    squares += l * l;
  }
  const auto count = static_cast<double>(samples.size());
  for (const double l : samples) spread += std::pow(l * l - squares / tokens * l, 2) / count;
  packing.samples = room / (tokens / count);
  packing.attended = squares / tokens;
  packing.spread = std::sqrt(packing.samples * spread) / room;
}

// One sample of each of `count` equal parts of the distribution, in an order of chance.
std::vector<double> evenly_drawn(const LengthSpec& lengths, std::size_t count, double room) {
  std::vector<double> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    samples[i] = std::min(room, length_quantile(lengths, share));
  }
  Draws draws;
  for (std::size_t left = count; left > 1; --left) {  // Fisher and Yates
    const auto other = static_cast<std::size_t>(draws.uniform() * static_cast<double>(left));
    std::swap(samples[left - 1], samples[other]);
  }
  return samples;
}

}  // namespace

Packing packing_of(const LengthSpec& lengths, std::int64_t sequence, bool is_packed) {
  constexpr double sequences = 512, most_samples = 50'000, many = 1000;
  const auto room = static_cast<double>(sequence);
  const double expected = std::max(1.0, room / std::min(room, lengths.mean));
  const double count = is_packed ? std::min(most_samples, sequences * expected) : most_samples / 4;
  const std::vector<double> samples = evenly_drawn(lengths, static_cast<std::size_t>(count), room);
  Packing packing{.lengths = lengths, .packed = is_packed};
  if (!is_packed) {
    packing.filled = std::accumulate(samples.begin(), samples.end(), 0.0) / count / room;
    return packing;
  }
  if (expected > many) {
    fill_with_many(samples, room, packing);
    return packing;
  }
  const std::vector<Filled> all = packed(samples, room);
  const auto packs = static_cast<double>(all.size());
  Filled sum;
  for (const Filled& one : all) {
    sum.samples += one.samples;
    sum.tokens += one.tokens;
    sum.squares += one.squares;
  }
  packing.samples = sum.samples / packs;
  packing.filled = sum.tokens / packs / room;
  packing.attended = sum.squares / packs / room;
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
  const double normal = normal_quantile(share);
  const double most = static_cast<double>(sequence) / packing.attended - 1;
  return std::min(most, normal * packing.spread / packing.attended / std::sqrt(sequences));
}

}  // namespace costmodel
