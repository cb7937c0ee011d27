// The optimizer of a training, and what it keeps of a parameter beside its master copy.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace costmodel {

// adam: two moments of every parameter (Kingma and Ba 2015, arXiv:1412.6980; AdamW as well).
// sgd: stochastic gradient descent with momentum, one moment. plain_sgd: without, none.
// adam8bit: Adam with block-wise quantised moments (Dettmers et al. 2022, arXiv:2110.02861), as
// bitsandbytes has it. adafactor: sums over rows and columns in the second moment's place, no first
// one (Shazeer and Stern 2018, arXiv:1804.04235, algorithm 4). muon: momentum of matrices, whose
// update is made orthogonal, and Adam for all other parameters (Jordan et al. 2024; Liu et al.
// 2025, arXiv:2502.16982).
enum class Optimizer { adam, sgd, plain_sgd, adam8bit, adafactor, muon };
inline constexpr std::array<std::string_view, 6> optimizer_names{
    "adam", "sgd", "plain-sgd", "adam-8bit", "adafactor", "muon"};
constexpr std::string_view to_string(Optimizer o) {
  return optimizer_names[static_cast<std::size_t>(o)];
}

constexpr bool is_sgd(Optimizer o) { return o == Optimizer::sgd || o == Optimizer::plain_sgd; }

// Whether it keeps the same number of moments of every parameter, each as `moment_precision` says.
constexpr bool keeps_alike(Optimizer o) { return o <= Optimizer::plain_sgd; }

// Whether it has moments whose precision can be chosen: not those of 8 bits, not none, not sums.
constexpr bool has_moment_precision(Optimizer o) {
  return o == Optimizer::adam || o == Optimizer::sgd || o == Optimizer::muon;
}

// The highest ZeRO stage that it works with: Adafactor needs rows and columns of full matrices,
// Muon full matrices, which ranks then share out among them.
constexpr int most_zero(Optimizer o) {
  return o == Optimizer::adafactor ? 0 : o == Optimizer::muon ? 1 : 3;
}

constexpr int moments_kept(Optimizer o) {
  constexpr std::array<int, 6> kept{2, 1, 0, 2, 0, 1};  // by Optimizer
  return kept[static_cast<std::size_t>(o)];
}

}  // namespace costmodel
