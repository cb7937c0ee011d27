#include "planner/report/explain_textbook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "planner/report/report_tables.hpp"

namespace planner {

using namespace costmodel;

namespace {

Seconds slowest(const std::vector<Seconds>& stages) { return *std::ranges::max_element(stages); }

Seconds sum(const std::vector<Seconds>& stages) {
  return std::accumulate(stages.begin(), stages.end(), Seconds(0));
}

class Textbook {
 public:
  Textbook(const Estimate& e, const Scenario& s, Evaluator& evaluator)
      : e_(e), s_(s), evaluator_(evaluator), p_(e.plan) {}

  std::vector<Explained> all() {
    corollaries();
    micro_batches();
    zero();
    trade_offs();
    return std::move(all_.rows);
  }

 private:
  // The estimate of a changed plan that is valid; nothing of another.
  std::optional<Estimate> estimate(const std::function<void(ParallelPlan&)>& change) {
    ParallelPlan plan = p_;
    change(plan);
    if (plan.virtual_stages() != p_.virtual_stages()) plan.stage_layers.clear();
    plan.sequence_parallel = plan.sequence_parallel && plan.tp > 1;
    if (!is_valid(plan, s_.model, s_.cluster, s_.training)) return std::nullopt;
    return evaluator_.estimate(plan);
  }

  // t_f and t_b of the slowest pipeline rank: of its v chunks together.
  static Seconds forward_of(const Estimate& e) {
    return Seconds(std::ranges::max(by_rank(e.stage_forward, e.plan)));
  }
  static Seconds backward_of(const Estimate& e) {
    return Seconds(std::ranges::max(by_rank(e.stage_backward, e.plan)));
  }

  // costmodel/schedule/closed_form.hpp; arXiv:2104.04473 section 2.2.
  void corollaries() {
    all_.group = "corollaries";
    const Seconds forward = sum(e_.stage_forward), step = forward_of(e_) + backward_of(e_);
    const auto m = static_cast<double>(e_.micro_batches);
    all_.add(
        "t_f / p", format_seconds(forward / p_.pp),
        fmt::format("a micro-batch through the whole model forward, {}, over p {} even stages; the "
                    "slowest stage takes {}",
                    format_seconds(forward), p_.pp, format_seconds(forward_of(e_))));
    all_.add("m (t_f + t_b)", format_seconds(m * step),
             fmt::format("m {} x {} of the slowest stage: a pipeline that is always full",
                         e_.micro_batches, format_seconds(step)));
    all_.add("m p (t_f + t_b)", format_seconds(m * p_.pp * step),
             fmt::format("one micro-batch in the pipeline at a time (naive model parallelism), or "
                         "device time of p stages; this plan's pipeline takes {}",
                         format_seconds(e_.pipeline)));
  }

  // The closed form of the plan's schedule for stages that are all as slow as the slowest.
  Seconds even_time(const Estimate& e) {
    if (fills_and_drains()) {
      const double turns = static_cast<double>(e.micro_batches) + (p_.pp - 1.0) / p_.vpp;
      return turns * (forward_of(e) + backward_of(e));
    }
    Seconds weight_gradient;
    for (const Seconds t : evaluator_.cost(e.plan).times.weight_gradient)
      weight_gradient = max(weight_gradient, t);
    return pipeline_time(p_.schedule, p_.pp, p_.vpp, e.micro_batches, slowest(e.stage_forward),
                         slowest(e.stage_backward) - weight_gradient, Seconds(0), weight_gradient);
  }

  void micro_batch_row(std::int64_t b, std::int64_t samples) {
    const auto e = estimate([b](ParallelPlan& plan) { plan.micro_batch = b; });
    if (!e) return;
    const Seconds step = forward_of(*e) + backward_of(*e);
    const std::string turns = fmt::format("({}/{} + {:.4g}) x {}", samples, b,
                                          (p_.pp - 1.0) / p_.vpp, format_seconds(step));
    all_.add(
        fmt::format("b {}{}", b, b == p_.micro_batch ? " (this plan)" : ""),
        format_seconds(even_time(*e)),
        fmt::format("{}: {} a sequence; simulated {}, {} GiB{}",
                    fills_and_drains()
                        ? turns
                        : fmt::format("{}/{} turns of {}", samples, b, format_seconds(step)),
                    format_seconds(step / static_cast<double>(b)), format_seconds(e->iteration),
                    format_gib(e->peak), e->fits() ? "" : ", does not fit"));
  }

  // Whether the schedule's closed form is (m + (p - 1)/v) (t_f + t_b).
  bool fills_and_drains() const {
    using enum costmodel::ScheduleKind;
    return p_.schedule == gpipe || p_.schedule == one_f_one_b || p_.schedule == interleaved;
  }

  // arXiv:2104.04473 section 3.4, equation 1.
  void micro_batches() {
    all_.group = "choice of b";
    const std::int64_t samples = s_.training.global_batch / p_.dp;
    all_.add(
        "b'", fmt::format("{}", samples),
        fills_and_drains()
            ? fmt::format("B / d; an iteration takes (b'/b + {}) (t_f(b) + t_b(b)): fewer, longer "
                          "turns against a bubble of longer ones",
                          p_.vpp > 1 ? "(p - 1)/v" : "p - 1")
            : fmt::format("B / d; an iteration takes {} with m = b'/b, t_f and t_b of b",
                          row_of(p_.schedule).formula));
    constexpr std::int64_t most = 64;
    for (std::int64_t b = 1; b <= std::max(p_.micro_batch, most); ++b) {
      const bool listed = b <= most && (b & (b - 1)) == 0;
      if (samples % b == 0 && (listed || b == p_.micro_batch)) micro_batch_row(b, samples);
    }
  }

  // arXiv:1910.02054 section 5: 2 + 2 + 12 bytes a parameter, of which an eighth is left.
  void zero() {
    all_.group = "ZeRO";
    const double w = weight_bytes_per_parameter(s_.training),
                 g = gradient_bytes_per_parameter(s_.training),
                 o = optimizer_bytes_per_parameter(s_.training), all = w + g + o;
    const double d = p_.shards();
    const auto row = [&](const char* symbol, double left, double limit, const char* formula) {
      all_.add(symbol, fmt::format("{:.4g} B", left),
               fmt::format("a parameter: {}; {} of ZeRO 0's {:.4g} here, {} with many ranks",
                           formula, percent(left / all), all, percent(limit / all)));
    };
    row("ZeRO 1", w + g + o / d, w + g, "weights + gradients + optimizer / d");
    row("ZeRO 2", w + (g + o) / d, w, "weights + (gradients + optimizer) / d");
    row("ZeRO 3", all / d, 0, "all / d");
    const double mixed = 2 + (2 + 12) / d;
    all_.add("an eighth", fmt::format("{:.4g} B", mixed),
             fmt::format("ZeRO 2 with the paper's 2 + 2 + 12 bytes: 2 + 14 / d, towards 2 of 16; "
                         "sent as without it, twice the parameters, ZeRO 3 three times"));
  }

  void pair_row(const std::string& symbol, const std::function<void(ParallelPlan&)>& change) {
    const auto e = estimate(change);
    if (!e) return;
    const auto& parts = e->breakdown;
    all_.add(symbol, format_seconds(e->iteration),
             fmt::format("bubble {}, tensor {}, pipeline {}, data {}; {} GiB{}",
                         format_seconds(parts.bubble), format_seconds(parts.tp_comm),
                         format_seconds(parts.pp_comm), format_seconds(parts.dp_comm),
                         format_gib(e->peak), e->fits() ? "" : ", does not fit"));
  }

  // Doubles one size and halves another, both ways.
  void pair(const char* first, int ParallelPlan::*one, const char* second,
            int ParallelPlan::*other) {
    const auto move = [&](const char* up, int ParallelPlan::*more, const char* down,
                          int ParallelPlan::*less) {
      if (p_.*less % 2 != 0) return;
      pair_row(fmt::format("{} {}, {} {}", up, 2 * p_.*more, down, p_.*less / 2),
               [more, less](ParallelPlan& plan) {
                 plan.*more *= 2;
                 plan.*less /= 2;
               });
    };
    move(first, one, second, other);
    move(second, other, first, one);
  }

  void tensor_against_pipeline() {
    const double t = p_.tp,
                 tokens = static_cast<double>(p_.micro_batch * s_.training.sequence) / p_.cp;
    const Bytes message(tokens * static_cast<double>(s_.model.hidden) *
                        storage_bytes(s_.training.precision));
    const double layers = static_cast<double>(s_.model.layers) / p_.pp;
    all_.add(
        "t : p", format_bytes(8 * (t - 1) / t * layers * message),
        fmt::format("a micro-batch in a tensor group: 8 b s h (t - 1)/t values for each of {:.4g} "
                    "layers a stage, against b s h to the next stage, {}; bubble (p - 1)/m = {} "
                    "(arXiv:2104.04473 section 3.2)",
                    layers, format_bytes(message),
                    percent((p_.pp - 1.0) / static_cast<double>(e_.micro_batches))));
    pair("t", &ParallelPlan::tp, "p", &ParallelPlan::pp);
  }

  void trade_offs() {
    all_.group = "trade-offs";
    pair_row("this plan", [](ParallelPlan&) {});
    tensor_against_pipeline();
    const std::int64_t n = std::int64_t{p_.pp} * p_.dp;
    const std::int64_t micro_batches = s_.training.global_batch / p_.micro_batch;
    all_.add(
        "p : d", percent(static_cast<double>(n - p_.dp) / static_cast<double>(micro_batches)),
        fmt::format("bubble (n - d)/b' with n = p d = {} and b' = B/b = {}: a larger d, a smaller "
                    "bubble, while the model fits (section 3.3.1)",
                    n, micro_batches));
    pair("p", &ParallelPlan::pp, "d", &ParallelPlan::dp);
    all_.add("t : d", fmt::format("{} to 1", e_.micro_batches),
             "a tensor group reduces for every micro-batch, a data group once a batch; and small "
             "products are slower (section 3.3.2)");
    pair("t", &ParallelPlan::tp, "d", &ParallelPlan::dp);
  }

  const Estimate& e_;
  const Scenario& s_;
  Evaluator& evaluator_;
  const ParallelPlan p_;
  Explanation all_;
};

}  // namespace

std::vector<Explained> textbook(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  return Textbook(e, s, evaluator).all();
}

}  // namespace planner
