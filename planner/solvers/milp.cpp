#include "planner/solvers/milp.hpp"

#include <CbcModel.hpp>
#include <CbcSolver.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>
#include <string>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// A 0-1 variable per strategy of a node and per pair of an edge; a pair's variable is linked by
// sums to those of both ends. Forbidden pairs have none.
class Program {
 public:
  explicit Program(const ShardingProblem& problem) : problem_(problem) {
    constexpr double largest = 1000;
    double most = 0;
    for (const auto& choices : problem.nodes) {
      for (const ShardingChoice& c : choices)
        if (is_possible(c)) most = std::max(most, std::abs(c.seconds));
    }
    for (const ShardingEdge& e : problem.edges) {
      for (const double seconds : e.seconds)
        if (std::isfinite(seconds)) most = std::max(most, std::abs(seconds));
    }
    if (most > 0) scale_ = largest / most;
    add_nodes();
    for (const ShardingEdge& e : problem.edges) add_edge(e);
    add_memory();
  }

  // Scale of the costs, per second: the solver's tolerances are absolute.
  double scale() const { return scale_; }

  void load(OsiClpSolverInterface& solver) const {
    const CoinPackedMatrix entries(false, row_.data(), column_.data(), value_.data(),
                                   static_cast<CoinBigIndex>(row_.size()));
    const std::vector<double> zero(cost_.size(), 0);
    solver.loadProblem(entries, zero.data(), upper_.data(), cost_.data(), low_.data(),
                       high_.data());
    // Pairs follow from their ends.
    for (int i = 0; i < strategies_; ++i) solver.setInteger(i);
  }

  std::vector<int> choice(const double* solution) const {
    std::vector<int> choice;
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      const double* own = solution + first_[v];
      const double* best = std::max_element(own, own + problem_.nodes[v].size());
      choice.push_back(static_cast<int>(best - own));
    }
    return choice;
  }

 private:
  void entry(int row, int column, double value) {
    row_.push_back(row);
    column_.push_back(column);
    value_.push_back(value);
  }
  int add_row(double low, double high) {
    low_.push_back(low);
    high_.push_back(high);
    return static_cast<int>(low_.size()) - 1;
  }
  int add_column(double cost, bool allowed) {
    cost_.push_back(allowed ? cost * scale_ : 0);
    upper_.push_back(allowed ? 1 : 0);
    return static_cast<int>(cost_.size()) - 1;
  }

  void add_nodes() {
    for (const auto& choices : problem_.nodes) {
      first_.push_back(static_cast<int>(cost_.size()));
      const int one = add_row(1, 1);
      for (const ShardingChoice& c : choices) entry(one, add_column(c.seconds, is_possible(c)), 1);
    }
    strategies_ = static_cast<int>(cost_.size());
  }

  void add_edge(const ShardingEdge& e) {
    const std::size_t rows = problem_.nodes[at(e.from)].size();
    const std::size_t columns = problem_.nodes[at(e.to)].size();
    if (e.from == e.to) {
      for (std::size_t i = 0; i < rows; ++i) {
        const double seconds = e.seconds[i * columns + i];
        const std::size_t column = at(first_[at(e.from)]) + i;
        if (std::isfinite(seconds)) {
          cost_[column] += seconds * scale_;
        } else {
          upper_[column] = 0;
        }
      }
      return;
    }
    std::vector<int> from, to;
    for (std::size_t i = 0; i < rows; ++i) {
      from.push_back(add_row(0, 0));
      entry(from.back(), first_[at(e.from)] + static_cast<int>(i), -1);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      to.push_back(add_row(0, 0));
      entry(to.back(), first_[at(e.to)] + static_cast<int>(j), -1);
    }
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        const double seconds = e.seconds[i * columns + j];
        if (!std::isfinite(seconds)) continue;
        const int pair = add_column(seconds, true);
        entry(from[i], pair, 1);
        entry(to[j], pair, 1);
      }
    }
  }

  // As fractions of the largest strategy, for the solver's tolerances.
  void add_memory() {
    if (problem_.memory_limit == infinity) return;
    double largest = 1;
    for (const auto& choices : problem_.nodes) {
      for (const ShardingChoice& c : choices) {
        if (is_possible(c)) largest = std::max(largest, c.bytes);
      }
    }
    const int row = add_row(-COIN_DBL_MAX, problem_.memory_limit / largest);
    for (std::size_t v = 0; v < problem_.nodes.size(); ++v) {
      for (std::size_t i = 0; i < problem_.nodes[v].size(); ++i) {
        const ShardingChoice& c = problem_.nodes[v][i];
        if (is_possible(c)) entry(row, first_[v] + static_cast<int>(i), c.bytes / largest);
      }
    }
  }

  const ShardingProblem& problem_;
  double scale_ = 1;
  int strategies_ = 0;
  std::vector<int> first_;  // variable of each node's first strategy
  std::vector<int> row_, column_;
  std::vector<double> value_, cost_, upper_, low_, high_;
};

}  // namespace

bool milp_available() { return true; }

Sharding solve_milp(const ShardingProblem& problem, double most_seconds) {
  Sharding found;
  found.method = ShardingMethod::integer_program;
  found.lower_bound = infinity;
  found.reason = senseless(problem);
  if (!found.reason.empty()) return found;
  OsiClpSolverInterface solver;
  solver.setLogLevel(0);
  const Program program(problem);
  program.load(solver);
  CbcModel model(solver);
  CbcMain0(model);
  model.setLogLevel(0);
  const std::string limit = std::to_string(most_seconds);
  const char* const arguments[] = {"cbc",         "-log",      "0",    "-sec",
                                   limit.c_str(), "-ratioGap", "0",    "-allowableGap",
                                   "0",           "-solve",    "-quit"};
  CbcMain1(static_cast<int>(std::size(arguments)), const_cast<const char**>(arguments), model);
  if (model.isProvenInfeasible()) {
    found.reason = "the integer program has no solution";
    return found;
  }
  found.lower_bound = model.getBestPossibleObjValue() / program.scale();
  if (model.bestSolution() == nullptr) {
    found.reason = "the integer program was not solved in time";
    return found;
  }
  found.choice = program.choice(model.bestSolution());
  const ShardingPrice price = price_of(problem, found.choice);
  found.seconds = price.seconds;
  found.bytes = price.bytes;
  if (model.isProvenOptimal()) found.lower_bound = found.seconds;
  return found;
}

}  // namespace planner
