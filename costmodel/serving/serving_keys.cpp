#include "costmodel/serving/serving_keys.hpp"

#include "costmodel/serving/engine.hpp"

namespace costmodel {

namespace {

using S = ServingSpec;

Key<S> length(std::string_view name, LengthSpec S::*field, std::string_view help) {
  return key::required(key::special<S>(name, key::fixed_text(length_help), help,
                                       [name, field](MapReader& reader, S& s) {
                                         s.*field = read_length(reader.required(name), name);
                                       }));
}

// It may be `auto`, which leaves it as it is.
Key<S> left_open(Key<S> row) {
  return key::or_word(std::move(row), "auto", [](MapReader& reader, std::string_view name, S&) {
    return reader.is_auto(name) && reader.optional(name) != nullptr;
  });
}

Keys<S> load_rows() {
  const IntegerRange many{1, 10'000'000};
  return key::rows<S>(
      key::required(key::special<S>("stack", key::fixed_text("a name or a map"),
                                    "an engine of configs/engines", [](MapReader&, S&) {})),
      length("input_tokens", &S::input, "tokens of a prompt"),
      length("output_tokens", &S::output, "tokens of an answer"),
      key::whole<S>("concurrency", &S::concurrency, many, "requests in flight over all replicas"),
      key::number<S>("arrival_rate", &S::arrival_rate, 1e-6, 1e7, "requests a second (Poisson)"),
      key::whole<S>("requests", &S::requests, many,
                    "of the run; all at once without the two above"),
      left_open(key::word<S>("weights", &S::weights, weight_format_names,
                             "format of the weights of linear layers; auto: plan chooses")),
      key::word<S>("kv_cache", &S::kv_cache, cache_format_names, "format of keys and values"));
}

const Keys<LatencyBound>& bound_rows() {
  using B = LatencyBound;
  static const auto rows = key::rows<B>(
      key::number<B>("ttft_s", &B::ttft, 1e-6, 1e5, "mean time to the first token, for plan"),
      key::number<B>("tpot_s", &B::tpot, 1e-6, 1e5, "mean time of a further token, for plan"),
      key::number<B>("e2e_s", &B::e2e, 1e-6, 1e5, "mean time of a whole answer, for plan"));
  return rows;
}

const Keys<ServingGoal>& budget_rows() {
  using G = ServingGoal;
  static const auto rows = key::rows<G>(
      key::number<G>("usd_per_hour", &G::usd_per_hour, 1e-6, 1e9,
                     "of all devices, at most: plan takes the most tokens/s that it pays for"),
      key::number<G>("usd_per_million_tokens", &G::usd_per_million, 1e-9, 1e9,
                     "of output tokens, at most"));
  return rows;
}

Keys<S> other_rows() {
  return key::rows<S>(
      left_open(key::tokens<S>("max_model_len", &S::max_model_len, {1, 1'000'000'000},
                               "prompt and answer of a request, at most; absent: the model's "
                               "context_length; auto: as long as the scenario's requests")),
      key::number<S>("swap_space_bytes", &S::swap_space, 0.0, 1e14,
                     "of host memory for preempted requests; for exports"),
      key::number<S>("cpu_offload_bytes", &S::cpu_offload, 0.0, 1e13,
                     "of a device's weights, kept in host memory and read every step"),
      key::number<S>("prefix_hit_share", &S::prefix_hit_share, 0.0, 0.99,
                     "of prompt tokens whose keys and values are cached already"),
      key::flag<S>("cuda_graphs", &S::cuda_graphs,
                   "steps that only decode are replayed; false: enforce_eager"),
      key::flag<S>("offline", &S::offline,
                   "prompts are given to the engine in its own process, with no server before it"),
      key::flag<S>("decode_only", &S::decode_only,
                   "prompts are prefilled on devices that are not counted"),
      key::map<S>("latency_bound", &S::bound, bound_rows()),
      key::number<S>(
          "throughput_target", [](S& s) -> double& { return s.goal.output_per_s; }, 1e-3, 1e12,
          "output tokens a second of all replicas, at least: plan takes the fewest devices"),
      key::map<S>("budget", &S::goal, budget_rows()));
}

Keys<S> limit_rows() {
  Keys<S> rows = key::of_part<S>(&S::limits, limit_keys());
  for (Key<S>& row : rows) row = left_open(std::move(row));
  return rows;
}

const Keys<ServingSizes>& pool_rows() {
  using Z = ServingSizes;
  const IntegerRange some{1, 16'384};
  static const auto rows =
      key::rows<Z>(key::whole<Z>("tp", &Z::tp, some, "tensor ranks of an instance"),
                   key::whole<Z>("pp", &Z::pp, some, "stages of an instance"),
                   key::whole<Z>("ep", &Z::ep, some, "1, a divisor of tp, or tp x dp"),
                   key::whole<Z>("dp", &Z::dp, some, "instances"));
  return rows;
}

}  // namespace

const Keys<ServingSpec>& serving_rows() {
  static const auto rows = joined<S>(load_rows(), limit_rows(), other_rows());
  return rows;
}

const Keys<Disaggregation>& disaggregation_rows() {
  using D = Disaggregation;
  static const auto rows =
      key::rows<D>(key::required(key::map<D>("prefill", &D::prefill, pool_rows())),
                   key::required(key::map<D>("decode", &D::decode, pool_rows())));
  return rows;
}

std::vector<KeyText> serving_keys() {
  std::vector<KeyText> all = described(serving_rows(), "serving.");
  all.push_back({"plan.disaggregation", "a map, none, auto",
                 "serving: prompts on devices of their own; none: plan leaves such plans out"});
  for (KeyText& key : described(disaggregation_rows(), "plan.disaggregation."))
    all.push_back(std::move(key));
  return all;
}

}  // namespace costmodel
