// Sites whose runs are drawn by the model of planner/accuracy/site_model.hpp.
#pragma once

#include <cmath>
#include <numbers>

#include "planner/accuracy/site_model.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace drawn {

// Standard normal, by Box and Muller.
class Normal {
 public:
  double operator()() {
    const double u = random_.real(1e-9, 1), v = random_.real(0, 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  fixtures::Random random_{7};
};

// Of a part of the time, about a fifth.
inline double share(Normal& normal) { return std::min(0.9, std::abs(0.2 + 0.1 * normal())); }

// With a factor on all time alone.
inline planner::SiteRuns site(const planner::SitePrior& prior, int runs, Normal& normal) {
  const double common = prior.spreads.front() * normal();
  const double noise = prior.noise * std::exp(prior.noise_spread * normal());
  planner::SiteRuns drawn;
  for (int i = 0; i < runs; ++i) drawn.push_back({common + noise * normal(), {1}});
  return drawn;
}

}  // namespace drawn
