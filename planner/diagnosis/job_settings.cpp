#include "planner/diagnosis/job_settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "costmodel/base/precision.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t n = 0;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, n);
  if (fault != std::errc() || stop != end || n < 0 || n > 1'000'000'000) return {};
  return n;
}

std::optional<bool> truth(const std::string& text) {
  if (text == "true") return true;
  if (text == "false" || text == "none") return false;
  return {};
}

struct Size {
  std::string_view key;
  int ParallelPlan::*size;
};
constexpr std::array sizes{
    Size{"plan.tp", &ParallelPlan::tp},    Size{"plan.pp", &ParallelPlan::pp},
    Size{"plan.cp", &ParallelPlan::cp},    Size{"plan.dp", &ParallelPlan::dp},
    Size{"plan.ep", &ParallelPlan::ep},    Size{"plan.vpp", &ParallelPlan::vpp},
    Size{"plan.zero", &ParallelPlan::zero}};

struct Count {
  std::string_view key;
  std::int64_t& (*of)(Job& job);
};
constexpr std::array counts{
    Count{"plan.micro_batch", [](Job& j) -> std::int64_t& { return j.plan.micro_batch; }},
    Count{"training.global_batch", [](Job& j) -> std::int64_t& { return j.training.global_batch; }},
    Count{"training.sequence", [](Job& j) -> std::int64_t& { return j.training.sequence; }},
    Count{"cluster.devices", [](Job& j) -> std::int64_t& { return j.cluster.devices; }}};

struct Switch {
  std::string_view key;
  bool& (*of)(Job& job);
};
constexpr std::array switches{
    Switch{"plan.sequence_parallel", [](Job& j) -> bool& { return j.plan.sequence_parallel; }},
    Switch{"training.overlap.overlap_grad_reduce",
           [](Job& j) -> bool& { return j.training.overlap.overlap_grad_reduce; }},
    Switch{"training.overlap.overlap_param_gather",
           [](Job& j) -> bool& { return j.training.overlap.overlap_param_gather; }},
    Switch{"training.overlap.tp_comm_overlap",
           [](Job& j) -> bool& { return j.training.overlap.tp_comm_overlap; }}};

template <class Rows>
auto row_of(const Rows& rows, std::string_view key) {
  const auto* const at =
      std::ranges::find_if(rows, [&](const auto& row) { return row.key == key; });
  return at == rows.end() ? nullptr : at;
}

template <class Names>
std::optional<std::size_t> place_of(const Names& names, const std::string& name) {
  const auto* const at = std::ranges::find(names, name);
  if (at == names.end()) return {};
  return static_cast<std::size_t>(at - names.begin());
}

}  // namespace

std::optional<std::string> setting(const Job& job, std::string_view key) {
  if (const auto* size = row_of(sizes, key)) return std::to_string(job.plan.*size->size);
  Job copy = job;
  if (const auto* count = row_of(counts, key)) return std::to_string(count->of(copy));
  if (const auto* one = row_of(switches, key)) return one->of(copy) ? "true" : "false";
  if (key == "plan.recompute") {
    const auto kind = static_cast<std::size_t>(job.plan.recompute.granularity);
    return std::string(recomputation_names[kind]);
  }
  if (key == "training.precision") return std::string(to_string(job.training.precision));
  return {};
}

bool set_setting(Job& job, std::string_view key, const std::string& value) {
  if (const auto* one = row_of(switches, key)) {
    const auto on = truth(value);
    if (on) one->of(job) = *on;
    return on.has_value();
  }
  if (key == "plan.recompute") {
    const auto kind = place_of(recomputation_names, value);
    if (kind) job.plan.recompute = {static_cast<Recomputation>(*kind)};
    return kind.has_value();
  }
  if (key == "training.precision") {
    const auto kind = place_of(precision_names, value);
    if (kind) job.training.precision = static_cast<Precision>(*kind);
    return kind.has_value();
  }
  const auto n = whole(value);
  if (!n) return false;
  if (const auto* count = row_of(counts, key)) {
    if (*n < 1 || key == "cluster.devices") return false;  // another machine is another scenario
    count->of(job) = *n;
    return true;
  }
  const auto* size = row_of(sizes, key);
  if (size == nullptr) return false;
  job.plan.*size->size = static_cast<int>(*n);
  const std::int64_t model_parallel = std::int64_t{job.plan.tp} * job.plan.pp * job.plan.cp;
  if (model_parallel > 0 && key != "plan.dp")
    job.plan.dp = static_cast<int>(std::max<std::int64_t>(1, job.cluster.devices / model_parallel));
  job.plan.schedule = takes_chunks(job.plan.schedule, job.plan.vpp) ? job.plan.schedule
                                                                    : usual_schedule(job.plan.vpp);
  return true;
}

}  // namespace planner
