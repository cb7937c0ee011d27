#include "costmodel/plan/length_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <string>

namespace costmodel {

double Draws::uniform() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  z ^= z >> 31U;
  return (static_cast<double>(z >> 11U) + 0.5) / 9007199254740992.0;
}

double Draws::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

namespace {

// Of a log-normal with this mean and 95th percentile: p95 / mean = exp(1.645 σ - σ²/2).
double sigma_of(double mean, double p95) {
  constexpr double z = 1.6448536269514722;
  const double slack = std::max(0.0, z * z - 2 * std::log(p95 / mean));
  return z - std::sqrt(slack);
}

constexpr double most_tokens = 10'000'000;

// The widest ratio of the 95th percentile of a log-normal to its mean: exp(z²/2), z = 1.645.
constexpr double widest_p95 = 3.86;

// `uniform` and `normal` give a number of those distributions.
template <class Uniform, class Normal>
double tokens_of(const LengthSpec& length, Uniform uniform, Normal normal) {
  double tokens = length.mean;
  if (length.most > 0) tokens = length.least + (length.most - length.least) * uniform();
  if (length.p95 > length.mean) {
    const double sigma = sigma_of(length.mean, length.p95);
    tokens = length.mean * std::exp(sigma * normal() - sigma * sigma / 2);
  }
  return std::max(1.0, std::round(tokens));
}

}  // namespace

double drawn(const LengthSpec& length, Draws& draws) {
  return tokens_of(
      length, [&] { return draws.uniform(); }, [&] { return draws.normal(); });
}

double normal_quantile(double share) {
  return std::numbers::sqrt2 * boost::math::erf_inv(2 * share - 1);
}

double length_quantile(const LengthSpec& length, double share) {
  return tokens_of(
      length, [=] { return share; }, [=] { return normal_quantile(share); });
}

LengthSpec read_length(const Value& as_written, std::string_view name) {
  const Value written = with_plain_lengths(as_written);
  const std::string what(name);
  if (written.is_scalar())
    return {.mean = read_number(written, what, Dimension::count, 1, most_tokens)};
  MapReader map(written, what, {"mean", "p95", "min", "max"}, "mean: 1024, p95: 2048");
  LengthSpec length;
  if (written.find("min") != nullptr || written.find("max") != nullptr) {
    length.least = map.required_number("min", Dimension::count, 1, most_tokens);
    length.most = map.required_number("max", Dimension::count, length.least, most_tokens);
    length.mean = (length.least + length.most) / 2;
  } else {
    length.mean = map.required_number("mean", Dimension::count, 1, most_tokens);
    length.p95 = map.number("p95", Dimension::count, length.mean, most_tokens).value_or(0);
    if (length.p95 > length.mean * widest_p95) {
      throw ConfigError(map.mark_of("p95"),
                        fmt::format("p95 {:g} with mean {:g}: lengths are taken as log-normal, "
                                    "whose 95th percentile is at most {:.2f} times the mean",
                                    length.p95, length.mean, widest_p95),
                        fmt::format("write p95: {:g} or less, or {{min, max}}",
                                    std::floor(length.mean * widest_p95)));
    }
  }
  map.finish();
  return length;
}

}  // namespace costmodel
