#include "planner/accuracy/site_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/planner/support/drawn_sites.hpp"
#include "tests/sanitized.hpp"

namespace site_model_test {

using namespace planner;
using drawn::Normal;

namespace {

const SitePrior usual{{0.05}, 0.07, 0.5, 1, 1};
constexpr std::array<double, most_site_constants> all_time{1};

}  // namespace

TEST_CASE("of a known noise the posterior is the textbook's") {
  // One value of s, nearly: the mean of n residuals, shrunk by n t² / (n t² + s²).
  const SitePrior prior{{0.05}, 0.1, 1e-6, 1, 1};
  const SiteRuns two{{0.12, {1}}, {0.08, {1}}};
  const SitePosterior known(prior, two);
  const double shrunk = 2 * 0.0025 / (2 * 0.0025 + 0.01);
  CHECK(known.mean(all_time) == doctest::Approx(0.1 * shrunk).epsilon(1e-6));
  const double variance = 0.0025 * 0.01 / (2 * 0.0025 + 0.01);
  constexpr double of_normal = 1.6448536;  // 95th percentile
  CHECK(known.common(all_time).high ==
        doctest::Approx(0.1 * shrunk + of_normal * std::sqrt(variance)).epsilon(1e-5));
  CHECK(known.next(all_time).high ==
        doctest::Approx(0.1 * shrunk + of_normal * std::sqrt(variance + 0.01)).epsilon(1e-5));
}

TEST_CASE("without a run the prior holds, and one run moves it little") {
  const SiteBand none = SitePosterior(usual, {}).next(all_time);
  CHECK(none.middle == doctest::Approx(0));
  CHECK(none.low == doctest::Approx(-none.high));
  const SiteFit one = fit_site(usual, {{0.2, {1}}});
  CHECK(one.factor > 0);
  CHECK(one.factor < 0.4 * 0.2);
  CHECK(one.before == 0);
  CHECK_FALSE(one.refused);
  const SiteFit ten = fit_site(usual, SiteRuns(10, {0.2, {1}}));
  CHECK(ten.factor > 0.8 * 0.2);
  CHECK(ten.next.high - ten.next.low < none.high - none.low);
}

TEST_CASE("runs that contradict each other shift nothing, and widen the interval") {
  const SiteFit apart = fit_site(usual, {{0.25, {1}}, {-0.2, {1}}});
  CHECK(apart.refused);
  CHECK(apart.factor == 0);
  CHECK(apart.after >= apart.before);
  const SiteFit alike = fit_site(usual, {{0.1, {1}}, {0.1, {1}}});
  CHECK_FALSE(alike.refused);
  CHECK(alike.after < alike.before);
  CHECK(apart.next.high - apart.next.low > alike.next.high - alike.next.low);
}

TEST_CASE("the stretch moves the interval's sides about its middle") {
  SitePrior stretched = usual;
  stretched.stretch_low = 0.5;
  stretched.stretch_high = 2;
  const SiteRuns runs{{0.1, {1}}, {0.06, {1}}};
  const SiteBand plain = SitePosterior(usual, runs).next(all_time);
  const SiteBand moved = SitePosterior(stretched, runs).next(all_time);
  CHECK(moved.middle == plain.middle);
  CHECK(moved.low - moved.middle == doctest::Approx(0.5 * (plain.low - plain.middle)));
  CHECK(moved.high - moved.middle == doctest::Approx(2 * (plain.high - plain.middle)));
}

TEST_CASE("planted factors of parts are recovered within their intervals") {
  const SitePrior prior{{0.1, 0.3, 0.3, 0.3}, 0.03, 0.3, 1, 1};
  const std::array<double, most_site_constants> planted{0.05, -0.25, 0.3, 0.1};
  Normal normal;
  SiteRuns runs;
  for (int i = 0; i < 400; ++i) {
    SiteRun run{0.03 * normal(), {1, drawn::share(normal), drawn::share(normal), 0}};
    run.shares[3] = drawn::share(normal);
    for (std::size_t k = 0; k < most_site_constants; ++k)
      run.residual += planted[k] * run.shares[k];
    runs.push_back(run);
  }
  const SitePosterior known(prior, runs);
  for (std::size_t k = 1; k < most_site_constants; ++k) {
    std::array<double, most_site_constants> alone{};
    alone[k] = 1;
    const SiteBand band = known.common(alone);
    CAPTURE(k);
    CHECK(band.low < planted[k]);
    CHECK(planted[k] < band.high);
    CHECK(band.high - band.low < 0.1);
  }
}

TEST_CASE("nine next runs in ten lie inside, and the prior of many sites is found") {
  Normal normal;
  std::vector<SiteRuns> sites;
  const int many = sanitized ? 60 : 300;
  int inside = 0, all = 0;
  for (int s = 0; s < many; ++s) {
    sites.push_back(drawn::site(usual, 12, normal));
    const SiteFit fit = fit_site(usual, {sites.back()[0], sites.back()[1]});
    for (std::size_t i = 2; i < sites.back().size(); ++i) {
      const double r = sites.back()[i].residual;
      inside += fit.next.low <= r && r <= fit.next.high ? 1 : 0;
      ++all;
    }
  }
  const double held = static_cast<double>(inside) / all;
  CHECK(held > (sanitized ? 0.84 : 0.87));
  CHECK(held < (sanitized ? 0.96 : 0.93));
  const SitePrior found = fit_site_prior(sites, first_site_prior(1));
  CHECK(found.spreads[0] == doctest::Approx(0.05).epsilon(0.35));
  CHECK(found.noise == doctest::Approx(0.07).epsilon(0.2));
  CHECK(found.noise_spread == doctest::Approx(0.5).epsilon(0.35));
}

}  // namespace site_model_test
