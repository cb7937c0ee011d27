#include "planner/frameworks/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::string_view settings = "set -euo pipefail\n";

// A batch script runs on the first node; Slurm keeps its copy there alone, so that the others get
// its text.
constexpr std::string_view start_on_each_node = R"sh(
# sbatch runs this file on the first node, which starts it on each of them.
if [[ -z "${SHARDPLAN_ON_NODE:-}" ]]; then
  MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
  export MASTER_ADDR SHARDPLAN_ON_NODE=1
  exec srun bash -c "$(cat "$0")" "$0" "$@"
fi
)sh";

constexpr std::string_view job_head = R"(apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: shardplan}
    data:
      launch.sh: |
)";

constexpr std::string_view job_tail = R"(  - apiVersion: v1
    kind: Service
    metadata: {{name: shardplan}}
    spec:
      clusterIP: None
      publishNotReadyAddresses: true
      selector: {{job-name: shardplan}}
  - apiVersion: batch/v1
    kind: Job
    metadata: {{name: shardplan}}
    spec:
      completionMode: Indexed
      completions: {0}
      parallelism: {0}
      backoffLimit: 0
      template:
        spec:
          subdomain: shardplan
          restartPolicy: Never
          containers:
            - name: train
              image: REPLACE
              command: [bash, /plan/launch.sh]
              env:
                - name: MASTER_ADDR
                  value: shardplan-0.shardplan
                - name: NODE_RANK
                  valueFrom:
                    fieldRef:
                      fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
              resources:
                limits: {{nvidia.com/gpu: {1}}}
              volumeMounts:
                - {{name: plan, mountPath: /plan}}
                - {{name: shared-memory, mountPath: /dev/shm}}
          volumes:
            - name: plan
              configMap: {{name: shardplan}}
            - name: shared-memory
              emptyDir: {{medium: Memory}}
)";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

std::string with_slurm_head(const std::string& script, std::int64_t nodes, std::int64_t each) {
  const std::size_t line = script.find('\n') + 1;
  return script.substr(0, line) +
         fmt::format(
             "#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node={}\n"
             "#SBATCH --exclusive\n",
             nodes, each) +
         script.substr(line);
}

std::string for_slurm(const std::string& script, std::int64_t nodes, std::int64_t each) {
  const std::string text = replaced(with_slurm_head(script, nodes, each), rendezvous_comment,
                                    "# which Slurm starts: sbatch FILE.\n");
  return replaced(text, settings, std::string(settings) + std::string(start_on_each_node));
}

std::string for_kubernetes(const std::string& script, std::int64_t nodes, std::int64_t each) {
  std::string text(job_head);
  std::istringstream lines(
      replaced(script, rendezvous_comment, "# which Kubernetes starts: kubectl apply -f FILE.\n"));
  for (std::string line; std::getline(lines, line);)
    text += (line.empty() ? "" : "        ") + line + "\n";
  return text + fmt::format(fmt::runtime(job_tail), nodes, each);
}

}  // namespace

Launcher launcher_of(std::string_view name) {
  const auto* const found = std::ranges::find(launcher_names, name);
  if (found == launcher_names.end()) {
    throw ConfigError({}, fmt::format("there is no launcher {}", quote(name)),
                      "allowed: torchrun, slurm, kubernetes");
  }
  return static_cast<Launcher>(found - launcher_names.begin());
}

std::string with_launcher(const std::string& script, Launcher launcher, const Scenario& scenario,
                          const ParallelPlan& plan) {
  if (launcher == Launcher::torchrun) return script;
  const bool started = script.find("\n#SBATCH ") != std::string::npos;
  const std::int64_t each = std::min(scenario.cluster.devices_per_node, plan.devices());
  const std::int64_t nodes = plan.devices() / each;
  // DeepSpeed's launcher starts the processes of all nodes from the first.
  if (!started && launcher == Launcher::slurm && script.find("\ndeepspeed ") != std::string::npos)
    return with_slurm_head(script, nodes, each);
  if (started || script.find("\ntorchrun ") == std::string::npos) {
    throw ConfigError({},
                      fmt::format("the script does not start its processes with torchrun alone: "
                                  "it cannot be launched by {}",
                                  launcher_names[static_cast<std::size_t>(launcher)]),
                      "export it without --launcher");
  }
  return launcher == Launcher::slurm ? for_slurm(script, nodes, each)
                                     : for_kubernetes(script, nodes, each);
}

std::string_view launcher_note(Launcher launcher) {
  return launcher == Launcher::kubernetes
             ? "image: REPLACE stands for an image with the framework, whose code is where the "
               "container starts"
             : "";
}

std::optional<std::string> script_of_job(const std::string& text, const std::string& file) {
  if (text.find("kind: ConfigMap") == std::string::npos) return {};
  const Value list = parse_yaml(text, file);
  const Value* items = list.find("items");
  if (items == nullptr) return {};
  for (const auto& item : items->items) {
    const Value* data = item.find("data");
    if (data == nullptr || !data->is_map()) continue;
    for (const auto& entry : data->entries)
      if (entry.key.ends_with(".sh")) return entry.value.text;
  }
  return {};
}

}  // namespace planner
