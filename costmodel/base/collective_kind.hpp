// Kinds of collective and point-to-point communication.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

enum class CollectiveKind {
  none,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  scatter,
  gather,
  send,
  ring,   // each rank's block travels around the ring: size - 1 neighbour transfers
  reduce  // the sum of all ranks' values, on one of them
};
inline constexpr std::array<std::string_view, 11> collective_names{
    "none",    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast",
    "scatter", "gather",     "send",       "ring",           "reduce"};

}  // namespace costmodel
