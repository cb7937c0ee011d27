#include "planner/report/explain_stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

class StageRows {
 public:
  StageRows(const Estimate& estimate, const Scenario& scenario, Evaluator& evaluator)
      : e_(estimate), s_(scenario), cost_(evaluator.cost(estimate.plan)) {}

  std::vector<Explained> all() {
    for (std::size_t k = 0; k < e_.meshes.size(); ++k) {
      all_.group = fmt::format("stage {}", k);
      submesh(k);
      times(k);
      gradients(k);
      memory(k);
    }
    return std::move(all_.rows);
  }

 private:
  void submesh(std::size_t k) {
    const StageMesh& mesh = e_.meshes[k];
    const ParallelPlan& p = mesh.plan;
    const auto& devices = group_of(s_.cluster, mesh.group);
    const bool context = p.cp > 1;
    all_.add(context ? "t x c x d" : "t x d",
             context ? fmt::format("{} x {} x {}", p.tp, p.cp, p.dp)
                     : fmt::format("{} x {}", p.tp, p.dp),
             fmt::format("devices {} to {} of {}: {}", mesh.first, mesh.first + mesh.devices - 1,
                         mesh.name.empty() ? "the cluster" : mesh.name, devices.device.title));
    all_.add(
        "b", fmt::format("{}", p.micro_batch),
        fmt::format("sequences of a replica: {} x {} / {}", e_.plan.dp, e_.plan.micro_batch, p.dp));
    if (context) {
      all_.add("s/c", fmt::format("{}", s_.training.sequence / p.cp),
               fmt::format("tokens of a sequence on a rank: {} / {}, cp_comm {}",
                           s_.training.sequence, p.cp,
                           costmodel::context_exchange_names[static_cast<std::size_t>(p.cp_comm)]));
    }
    if (s_.model.experts > 0) {
      all_.add("E/e", fmt::format("{}", s_.model.experts / p.ep),
               fmt::format("experts on a rank: {} / {}; {} ranks hold the same", s_.model.experts,
                           p.ep, p.expert_replicas()));
    }
  }

  void transfer(const char* symbol, const costmodel::StageTransfer& t, std::size_t to) {
    all_.add(symbol, format_seconds(t.time),
             fmt::format("{} from each device to stage {}{}", format_bytes(t.sent), to,
                         t.gathered.value > 0 ? ", gathered over its tensor ranks" : ""));
  }

  void times(std::size_t k) {
    all_.add("t_f", format_seconds(e_.stage_forward[k]), "forward of one micro-batch");
    all_.add("t_b", format_seconds(e_.stage_backward[k]),
             fmt::format("backward, recompute {}", to_string(e_.meshes[k].plan.recompute)));
    if (k < cost_.boundaries.size()) transfer("t_send", cost_.boundaries[k].forward, k + 1);
    if (k > 0) transfer("t_back", cost_.boundaries[k - 1].backward, k - 1);
  }

  void gradients(std::size_t k) {
    const StageMesh& mesh = e_.meshes[k];
    const auto& devices = group_of(s_.cluster, mesh.group);
    const auto layout = costmodel::Mesh(mesh.plan).replica_layout(devices);
    const double bytes = cost_.ranks[k].weights.all * gradient_bytes_per_parameter(s_.training);
    all_.add("G", format_bytes(costmodel::Bytes(bytes)), "gradients on one device");
    all_.add("t_dp", format_seconds(cost_.ranks[k].after.gradient_exposed),
             fmt::format("their reduction over {} ranks {} apart, not hidden", layout.size,
                         layout.stride));
    if (cost_.ranks[k].after.gather_exposed.value > 0) {
      all_.add("gather", format_seconds(cost_.ranks[k].after.gather_exposed),
               "exposed parameter gather");
    }
    all_.add("t_opt", format_seconds(cost_.ranks[k].after.optimizer),
             fmt::format("optimizer, ZeRO {}", mesh.plan.zero));
  }

  void memory(std::size_t k) {
    all_.add("memory", format_bytes(e_.memory[k].total()),
             fmt::format("of {}, {:.4g} micro-batches in flight",
                         format_bytes(e_.stage_capacity[k]), e_.memory[k].in_flight_micro_batches));
  }

  const Estimate& e_;
  const Scenario& s_;
  const costmodel::PlanCost& cost_;
  Explanation all_;
};

}  // namespace

std::vector<Explained> explained_stages(const Estimate& e, const Scenario& s,
                                        Evaluator& evaluator) {
  return StageRows(e, s, evaluator).all();
}

std::vector<StageKind> stage_kinds(const Estimate& e, const Scenario& s) {
  std::vector<StageKind> kinds;
  std::vector<const StageMesh*> told;
  for (const StageMesh& mesh : e.meshes) {
    const auto alike = [&mesh](const StageMesh* other) {
      return other->group == mesh.group && other->plan.tp == mesh.plan.tp &&
             other->plan.micro_batch == mesh.plan.micro_batch &&
             context_and_experts_text(other->plan, " ") == context_and_experts_text(mesh.plan, " ");
    };
    if (std::ranges::any_of(told, alike)) continue;
    told.push_back(&mesh);
    kinds.push_back({static_cast<int>(&mesh - e.meshes.data()), mesh.plan, s});
    kinds.back().scenario.cluster = group_of(s.cluster, mesh.group);
  }
  return kinds;
}

}  // namespace planner
