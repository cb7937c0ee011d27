// How far the runs of one site (one source's runs on one device by one stack) are off together, and
// each by itself. For run i with r_i = log(measured / predicted),
//
//   r_i = sum over k of x_ik · theta_k + e_i,   theta_k ~ N(0, spread_k²),   e_i ~ N(0, s²),
//   log s ~ N(log noise, noise_spread²).
//
// theta_k is the logarithm of the site's own factor on a constant, and x_ik the share of the
// predicted time that it moves: d log T = sum of x_k · d log c_k. A constant of share 1 is a factor
// on all time. This is the linear model with a prior between groups of Lindley and Smith 1972
// (Bayes Estimates for the Linear Model, J. R. Stat. Soc. B 34, equations 9 to 13); spreads and
// noise are estimated on other sites, by the largest marginal likelihood (empirical Bayes, Morris
// 1983, J. Am. Stat. Assoc. 78). s is summed over a grid: a site whose known runs contradict each
// other is one of much noise, so they shift little.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace planner {

inline constexpr std::size_t most_site_constants = 4;

struct SiteRun {
  double residual = 0;  // log(measured / predicted)
  std::array<double, most_site_constants> shares{1};
};
using SiteRuns = std::vector<SiteRun>;

struct SitePrior {
  std::vector<double> spreads;  // of the logarithm of each constant; the first shares are theirs
  double noise = 0;             // median over sites
  double noise_spread = 0;      // of its logarithm
  // Factors on the two sides of the interval: other sites' errors are not normal, longer on the
  // side of slower runs (runs_known.hpp).
  double stretch_low = 1, stretch_high = 1;
};

// Of log(measured / predicted): 5th percentile, mean, 95th percentile.
struct SiteBand {
  double low = 0, middle = 0, high = 0;
  bool operator==(const SiteBand&) const = default;
};

// What is known of a site after some of its runs.
class SitePosterior {
 public:
  SitePosterior(const SitePrior& prior, const SiteRuns& known);

  // The logarithm of the known runs' likelihood.
  double log_likelihood() const { return log_likelihood_; }
  // Of the next run with these shares, its own noise included.
  SiteBand next(const std::array<double, most_site_constants>& shares) const;
  // The mean of the next run's.
  double mean(const std::array<double, most_site_constants>& shares) const;
  // Of the part that all runs with these shares have in common.
  SiteBand common(const std::array<double, most_site_constants>& shares) const;

 private:
  using Vector = std::array<double, most_site_constants>;
  // The posterior given one value of s: weight of s, mean and covariance of theta.
  struct Given {
    double weight = 0, variance = 0;
    Vector mean{};
    std::array<Vector, most_site_constants> covariance{};
  };
  SiteBand band(const Vector& shares, bool noise) const;

  std::size_t constants_;
  double stretch_low_, stretch_high_;
  std::vector<Given> given_;
  double log_likelihood_ = 0;
};

// What the runs known of a site make of its next ones.
struct SiteFit {
  double factor = 0;              // logarithm of the site's factor on all time
  SiteBand next;                  // of log(measured / predicted), without the factor
  double before = 0, after = 0;   // mean error of the known runs, each by the others: without a
                                  // factor, and with it; 0 for fewer than two
  std::vector<double> by_others;  // by run, the factor's logarithm by the others
  bool refused = false;           // the factor is 1, because that error would not become smaller
};

// With the first constant of the prior alone, which is a factor on all time.
SiteFit fit_site(const SitePrior& prior, const SiteRuns& known);

// |predicted - measured| / measured, where log(measured / predicted) is `residual`.
double relative_error_of(double residual);

// The prior of largest likelihood over the sites; a site weighs as the square root of its runs.
// `from`: where to begin, of as many constants.
SitePrior fit_site_prior(const std::vector<SiteRuns>& sites, const SitePrior& from);

// Where a first fit of so many constants begins: round numbers.
SitePrior first_site_prior(std::size_t constants);

}  // namespace planner
