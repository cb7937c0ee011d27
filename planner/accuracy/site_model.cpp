#include "planner/accuracy/site_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace planner {

namespace {

using Vector = std::array<double, most_site_constants>;
using Matrix = std::array<Vector, most_site_constants>;

// What the likelihood needs of a site's runs.
struct Sums {
  double runs = 0, squares = 0;
  Vector with{};      // sum of share · residual
  Matrix products{};  // sum of share · share
};

Sums sums_of(const SiteRuns& runs, std::size_t constants) {
  Sums sums;
  for (const SiteRun& run : runs) {
    sums.runs += 1;
    sums.squares += run.residual * run.residual;
    for (std::size_t i = 0; i < constants; ++i) {
      sums.with[i] += run.shares[i] * run.residual;
      for (std::size_t j = 0; j < constants; ++j)
        sums.products[i][j] += run.shares[i] * run.shares[j];
    }
  }
  return sums;
}

// Inverts a symmetric positive matrix in place, by Gauss and Jordan, and returns the logarithm of
// its determinant.
double invert(Matrix& m, std::size_t n) {
  double log_determinant = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = m[i][i];
    log_determinant += std::log(pivot);
    m[i][i] = 1;
    for (std::size_t j = 0; j < n; ++j) m[i][j] /= pivot;
    for (std::size_t k = 0; k < n; ++k) {
      if (k == i) continue;
      const double factor = std::exchange(m[k][i], 0.0);
      for (std::size_t j = 0; j < n; ++j) m[k][j] -= factor * m[i][j];
    }
  }
  return log_determinant;
}

double dot(const Vector& a, const Vector& b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Values of s, in spreads of its logarithm about the middle.
constexpr int noise_values = 12;
constexpr double widest_noise = 2.2, noise_step = 2 * widest_noise / (noise_values - 1);

struct Theta {
  Vector mean{};
  Matrix covariance{};
  double log_likelihood = 0;
};

// Given the noise. Lindley and Smith 1972, equation 10: the covariance is (X'X / s² + D⁻¹)⁻¹, and
// the mean that times X'r / s².
Theta theta_given(const Sums& sums, const std::vector<double>& spreads, double variance) {
  const std::size_t n = spreads.size();
  Theta theta;
  double log_prior = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) theta.covariance[i][j] = sums.products[i][j] / variance;
    theta.covariance[i][i] += 1 / (spreads[i] * spreads[i]);
    log_prior += 2 * std::log(spreads[i]);
  }
  const double log_determinant = invert(theta.covariance, n);
  for (std::size_t i = 0; i < n; ++i)
    theta.mean[i] = dot(theta.covariance[i], sums.with, n) / variance;
  theta.log_likelihood =
      -0.5 * (sums.runs * std::log(2 * std::numbers::pi * variance) + log_determinant + log_prior +
              (sums.squares - dot(sums.with, theta.mean, n)) / variance);
  return theta;
}

// The logarithm of the sum of exponentials; the values become their shares of it.
double normalise(std::vector<double>& logs) {
  const double most = *std::ranges::max_element(logs);
  double sum = 0;
  for (double& value : logs) sum += value = std::exp(value - most);
  for (double& value : logs) value /= sum;
  return most + std::log(sum);
}

// Calls `each` with the weight's logarithm and the variance of every value of s.
template <class Each>
void over_noise(const SitePrior& prior, const Each& each) {
  double total = 0;
  for (int i = 0; i < noise_values; ++i) {
    const double at = -widest_noise + i * noise_step;
    total += std::exp(-at * at / 2);
  }
  for (int i = 0; i < noise_values; ++i) {
    const double at = -widest_noise + i * noise_step;
    const double noise = prior.noise * std::exp(prior.noise_spread * at);
    each(-at * at / 2 - std::log(total), noise * noise);
  }
}

double log_likelihood_of(const Sums& sums, const SitePrior& prior) {
  std::vector<double> logs;
  over_noise(prior, [&](double log_weight, double variance) {
    logs.push_back(log_weight + theta_given(sums, prior.spreads, variance).log_likelihood);
  });
  return normalise(logs);
}

// A part of a mixture of normal distributions.
struct Part {
  double weight, mean, deviation;
};

double quantile(const std::vector<Part>& parts, double fraction) {
  double low = parts.front().mean, high = low;
  constexpr double far = 8;  // deviations
  for (const Part& part : parts) {
    low = std::min(low, part.mean - far * part.deviation);
    high = std::max(high, part.mean + far * part.deviation);
  }
  constexpr int halvings = 40;
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    double below = 0;
    for (const Part& part : parts) {
      below += part.weight * 0.5 *
               std::erfc((part.mean - middle) / (part.deviation * std::numbers::sqrt2));
    }
    (below < fraction ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

SitePosterior::SitePosterior(const SitePrior& prior, const SiteRuns& known)
    : constants_(prior.spreads.size()),
      stretch_low_(prior.stretch_low),
      stretch_high_(prior.stretch_high) {
  const Sums sums = sums_of(known, constants_);
  std::vector<double> logs;
  over_noise(prior, [&](double log_weight, double variance) {
    const Theta theta = theta_given(sums, prior.spreads, variance);
    logs.push_back(log_weight + theta.log_likelihood);
    given_.push_back({0, variance, theta.mean, theta.covariance});
  });
  log_likelihood_ = normalise(logs);
  for (std::size_t i = 0; i < logs.size(); ++i) given_[i].weight = logs[i];
}

SiteBand SitePosterior::band(const Vector& shares, bool noise) const {
  std::vector<Part> parts;
  SiteBand band;
  for (const Given& given : given_) {
    const double mean = dot(shares, given.mean, constants_);
    double variance = noise ? given.variance : 0;
    for (std::size_t i = 0; i < constants_; ++i)
      variance += shares[i] * dot(shares, given.covariance[i], constants_);
    parts.push_back({given.weight, mean, std::sqrt(variance)});
    band.middle += given.weight * mean;
  }
  band.low = quantile(parts, 0.05);
  band.high = quantile(parts, 0.95);
  if (!noise) return band;
  band.low = band.middle + stretch_low_ * (band.low - band.middle);
  band.high = band.middle + stretch_high_ * (band.high - band.middle);
  return band;
}

SiteBand SitePosterior::next(const Vector& shares) const { return band(shares, true); }

double SitePosterior::mean(const Vector& shares) const {
  double mean = 0;
  for (const Given& given : given_) mean += given.weight * dot(shares, given.mean, constants_);
  return mean;
}

SiteBand SitePosterior::common(const Vector& shares) const { return band(shares, false); }

double relative_error_of(double residual) { return std::abs(std::expm1(-residual)); }

namespace {

constexpr Vector all_time{1};

SiteRuns without(const SiteRuns& runs, std::size_t one) {
  SiteRuns others = runs;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(one));
  return others;
}

}  // namespace

SiteFit fit_site(const SitePrior& prior, const SiteRuns& known) {
  SitePrior time = prior;
  time.spreads.resize(1);
  SiteFit fit;
  fit.next = SitePosterior(time, known).next(all_time);
  fit.factor = fit.next.middle;
  if (known.size() < 2) return fit;
  const auto runs = static_cast<double>(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double by_others = SitePosterior(time, without(known, i)).next(all_time).middle;
    fit.by_others.push_back(by_others);
    fit.before += relative_error_of(known[i].residual) / runs;
    fit.after += relative_error_of(known[i].residual - by_others) / runs;
  }
  fit.refused = fit.after >= fit.before;
  if (fit.refused) fit.factor = 0;
  return fit;
}

SitePrior first_site_prior(std::size_t constants) {
  SitePrior prior{std::vector<double>(constants, 0.1), 0.06, 0.5, 1, 1};
  prior.spreads.front() = 0.05;
  return prior;
}

namespace {

// A prior as the logarithms that are searched over.
using LogPrior = std::vector<double>;

LogPrior log_prior_of(const SitePrior& prior) {
  LogPrior point;
  for (const double spread : prior.spreads) point.push_back(std::log(spread));
  point.push_back(std::log(prior.noise));
  point.push_back(std::log(prior.noise_spread));
  return point;
}

SitePrior prior_at(const LogPrior& point) {
  SitePrior prior;
  for (std::size_t i = 0; i + 2 < point.size(); ++i) prior.spreads.push_back(std::exp(point[i]));
  prior.noise = std::exp(point[point.size() - 2]);
  prior.noise_spread = std::exp(point.back());
  return prior;
}

// The weighted likelihood, less what keeps every number within some factors of where a fit begins:
// a normal distribution of its logarithm, so that one that no site decides stays finite.
double objective(const std::vector<Sums>& sites, const LogPrior& point, const LogPrior& first) {
  constexpr double reach = 1;
  const SitePrior prior = prior_at(point);
  double sum = 0;
  for (const Sums& site : sites)
    if (site.runs > 0) sum += log_likelihood_of(site, prior) / std::sqrt(site.runs);
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double off = (point[i] - first[i]) / reach;
    sum -= off * off / 2;
  }
  return sum;
}

}  // namespace

// One number at a time, up and down, by steps that are halved until they are a thirtieth.
SitePrior fit_site_prior(const std::vector<SiteRuns>& sites, const SitePrior& from) {
  std::vector<Sums> sums;
  for (const SiteRuns& site : sites) sums.push_back(sums_of(site, from.spreads.size()));
  const LogPrior first = log_prior_of(first_site_prior(from.spreads.size()));
  LogPrior at = log_prior_of(from);
  std::vector<double> steps(at.size(), 0.5);
  double best = objective(sums, at, first);
  while (*std::ranges::max_element(steps) > 1.0 / 30) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      bool moved = false;
      for (const double step : {steps[i], -steps[i]}) {
        LogPrior to = at;
        to[i] += step;
        const double there = objective(sums, to, first);
        if (there <= best + 1e-9) continue;
        best = there;
        at = to;
        moved = true;
        break;
      }
      if (!moved) steps[i] /= 2;
    }
  }
  return prior_at(at);
}

}  // namespace planner
