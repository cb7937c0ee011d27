#include "calibrate/fit/robust_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace calibrate {

namespace {

constexpr double huber_limit = 1.345;       // 95 % efficiency on normal errors (Huber 1964)
constexpr double normal_over_mad = 1.4826;  // standard deviation over median absolute deviation
constexpr double smallest_scale = 1e-7;
constexpr int rescalings = 30;
constexpr int steps = 60;

class Problem {
 public:
  Problem(const std::vector<Bounded>& parameters, std::size_t points, const Residual& residual)
      : parameters_(parameters), points_(points), residual_(residual) {}

  std::vector<double> residuals(const std::vector<double>& values) const {
    std::vector<double> r(points_);
    for (std::size_t i = 0; i < points_; ++i) r[i] = residual_(values, i);
    return r;
  }

  std::vector<double> clamped(std::vector<double> values) const {
    for (std::size_t j = 0; j < values.size(); ++j)
      values[j] = std::clamp(values[j], parameters_[j].least, parameters_[j].most);
    return values;
  }

  // Differences on either side, one-sided at a bound.
  Eigen::MatrixXd jacobian(const std::vector<double>& values) const {
    Eigen::MatrixXd jacobian(static_cast<Eigen::Index>(points_),
                             static_cast<Eigen::Index>(values.size()));
    for (std::size_t j = 0; j < values.size(); ++j) {
      const auto& p = parameters_[j];
      const double h = 1e-4 * std::max(std::abs(values[j]), 1e-4 * (p.most - p.least));
      auto above = values, below = values;
      above[j] = std::min(values[j] + h, p.most);
      below[j] = std::max(values[j] - h, p.least);
      const auto up = residuals(above), down = residuals(below);
      for (std::size_t i = 0; i < points_; ++i) {
        jacobian(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
            (up[i] - down[i]) / (above[j] - below[j]);
      }
    }
    return jacobian;
  }

  bool held(std::size_t j, double value, double gradient) const {  // at a bound, pulled outwards
    const auto& p = parameters_[j];
    return (value <= p.least && gradient > 0) || (value >= p.most && gradient < 0);
  }

 private:
  const std::vector<Bounded>& parameters_;
  std::size_t points_;
  const Residual& residual_;
};

double scale_of(const std::vector<double>& residuals) {
  std::vector<double> sizes;
  for (const double r : residuals) sizes.push_back(std::abs(r));
  return std::max(normal_over_mad * quantile(sizes, 0.5), smallest_scale);
}

double loss_of(const std::vector<double>& residuals, double limit) {
  double loss = 0;
  for (const double r : residuals) {
    const double size = std::abs(r);
    loss += size <= limit ? 0.5 * r * r : limit * (size - 0.5 * limit);
  }
  return loss;
}

struct Normal {  // the weighted normal equations
  Eigen::MatrixXd matrix;
  Eigen::VectorXd gradient;
};

Normal normal_equations(const Problem& problem, const std::vector<double>& values,
                        const std::vector<double>& residuals, double limit) {
  const Eigen::MatrixXd j = problem.jacobian(values);
  Eigen::VectorXd weights(j.rows()), r(j.rows());
  for (Eigen::Index i = 0; i < j.rows(); ++i) {
    r(i) = residuals[static_cast<std::size_t>(i)];
    weights(i) = std::abs(r(i)) <= limit ? 1 : limit / std::abs(r(i));
  }
  return {j.transpose() * weights.asDiagonal() * j, j.transpose() * weights.cwiseProduct(r)};
}

std::vector<double> stepped(const Problem& problem, const std::vector<double>& values,
                            const Normal& normal, double damping) {
  Eigen::MatrixXd a = normal.matrix;
  Eigen::VectorXd g = normal.gradient;
  for (Eigen::Index j = 0; j < a.rows(); ++j) {
    if (a(j, j) == 0 ||
        problem.held(static_cast<std::size_t>(j), values[static_cast<std::size_t>(j)], g(j))) {
      a.row(j).setZero();
      a.col(j).setZero();
      a(j, j) = 1;
      g(j) = 0;
    } else {
      a(j, j) *= 1 + damping;
    }
  }
  const Eigen::VectorXd step = a.ldlt().solve(-g);
  auto next = values;
  for (std::size_t j = 0; j < next.size(); ++j) next[j] += step(static_cast<Eigen::Index>(j));
  return problem.clamped(next);
}

// Levenberg-Marquardt at one scale.
std::vector<double> descend(const Problem& problem, std::vector<double> values, double limit) {
  double damping = 1e-3;
  auto residuals = problem.residuals(values);
  double loss = loss_of(residuals, limit);
  for (int i = 0; i < steps; ++i) {
    const Normal normal = normal_equations(problem, values, residuals, limit);
    bool better = false;
    for (; !better && damping < 1e10; damping *= 4) {
      const auto next = stepped(problem, values, normal, damping);
      auto there = problem.residuals(next);
      const double reached = loss_of(there, limit);
      if (!(reached < loss * (1 - 1e-12))) continue;
      better = true;
      values = next;
      residuals = std::move(there);
      loss = reached;
    }
    if (!better) break;
    damping = std::max(damping / 40, 1e-9);
  }
  return values;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

RobustFit fit_robustly(const std::vector<Bounded>& parameters, std::size_t points,
                       const Residual& residual) {
  const Problem problem(parameters, points, residual);
  std::vector<double> start;
  for (const auto& p : parameters) start.push_back(p.start);
  RobustFit fit{problem.clamped(start)};
  double scale = scale_of(problem.residuals(fit.values));
  for (int i = 0; i < rescalings; ++i) {
    fit.values = descend(problem, fit.values, huber_limit * scale);
    const double next = scale_of(problem.residuals(fit.values));
    if (std::abs(next - scale) <= 1e-6 * scale) break;
    scale = next;
  }
  for (const double r : problem.residuals(fit.values))
    fit.mean_error += std::abs(r) / static_cast<double>(points);
  return fit;
}

}  // namespace calibrate
