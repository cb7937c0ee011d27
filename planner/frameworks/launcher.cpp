#include "planner/frameworks/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <utility>

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

// Of the name, the nodes, the devices of each, and the resource of their network adapters.
constexpr std::string_view job_head = R"(apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {{name: {name}}}
    data:
      launch.sh: |
)";

constexpr std::string_view job_tail = R"(  - apiVersion: v1
    kind: Service
    metadata: {{name: {name}}}
    spec:
      clusterIP: None
      publishNotReadyAddresses: true
      selector: {{job-name: {name}}}
  - apiVersion: batch/v1
    kind: Job
    metadata:
      name: {name}
      labels: {{kueue.x-k8s.io/queue-name: {queue}}}
    spec:
      completionMode: Indexed
      completions: {nodes}
      parallelism: {nodes}
      backoffLimit: 0
      template:
        spec:
          subdomain: {name}
          restartPolicy: Never
          containers:
            - name: train
              image: {image}
              workingDir: {folder}
              command: [bash, /plan/launch.sh]
              env:
                - name: MASTER_ADDR
                  value: {name}-0.{name}
                - name: NODE_RANK
                  valueFrom:
                    fieldRef:
                      fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
              securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}
              resources:
                limits: {{nvidia.com/gpu: {each}{rdma}}}
              volumeMounts:
                - {{name: plan, mountPath: /plan}}
                - {{name: shared-memory, mountPath: /dev/shm}}
          volumes:
            - name: plan
              configMap: {{name: {name}}}
            - name: shared-memory
              emptyDir: {{medium: Memory}}
)";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// What a launch is written for.
struct Job {
  std::string name;
  std::int64_t nodes, each;
  const Site& site;
};

std::string with_slurm_head(const std::string& script, const Job& job) {
  const std::size_t line = script.find('\n') + 1;
  std::string head = fmt::format(
      "#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n#SBATCH --partition={}\n",
      job.name, job.nodes, job.each, job.site.queue);
  if (!job.site.account.empty()) head += fmt::format("#SBATCH --account={}\n", job.site.account);
  if (!job.site.time.empty()) head += fmt::format("#SBATCH --time={}\n", job.site.time);
  return script.substr(0, line) + head + script.substr(line);
}

std::string for_slurm(const std::string& script, const Job& job) {
  const std::string text = replaced(with_slurm_head(script, job), rendezvous_comment,
                                    "# which Slurm starts: sbatch FILE.\n");
  return replaced(text, settings, std::string(settings) + std::string(start_on_each_node));
}

std::string for_kubernetes(const std::string& script, const Job& job) {
  using fmt::arg;
  std::string text = fmt::format(fmt::runtime(job_head), arg("name", job.name));
  std::istringstream lines(
      replaced(script, rendezvous_comment, "# which Kubernetes starts: kubectl apply -f FILE.\n"));
  for (std::string line; std::getline(lines, line);)
    text += (line.empty() ? "" : "        ") + line + "\n";
  const std::string rdma = job.nodes > 1 ? fmt::format(", {}: 1", job.site.rdma) : "";
  return text + fmt::format(fmt::runtime(job_tail), arg("name", job.name), arg("nodes", job.nodes),
                            arg("each", job.each), arg("queue", job.site.queue),
                            arg("image", job.site.image), arg("folder", job.site.folder),
                            arg("rdma", rdma));
}

}  // namespace

Site site_of(const std::vector<std::string>& settings) {
  Site site;
  const std::map<std::string, std::string*> keys{
      {"queue", &site.queue}, {"account", &site.account}, {"time", &site.time},
      {"image", &site.image}, {"folder", &site.folder},   {"rdma", &site.rdma}};
  for (const std::string& setting : settings) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const auto found = keys.find(setting.substr(0, equals));
    const std::string value = setting.substr(std::min(equals + 1, setting.size()));
    const bool plain = std::ranges::all_of(value, [](unsigned char c) {
      return std::isalnum(c) != 0 ||
             std::string_view("-_./:@").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (found == keys.end() || value.empty() || !plain) {
      throw ConfigError({}, fmt::format("--site {} is no setting of a site", quote(setting)),
                        "allowed: queue, account, time, image, folder, rdma, each =WORD");
    }
    *found->second = value;
  }
  return site;
}

std::string job_name(const Scenario& scenario) {
  constexpr std::size_t longest = 40;  // of 63, with what Kubernetes adds for its pods
  std::string name;
  for (const unsigned char c : scenario.name) {
    const bool letter = std::isalnum(c) != 0;
    if (letter) name += static_cast<char>(std::tolower(c));
    if (!letter && !name.empty() && name.back() != '-') name += '-';
  }
  name = name.substr(0, longest);
  while (name.ends_with('-')) name.pop_back();
  const bool begins = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
  return begins ? name : "shardplan" + (name.empty() ? "" : "-" + name);
}

Launcher launcher_of(std::string_view name) {
  const auto* const found = std::ranges::find(launcher_names, name);
  if (found == launcher_names.end()) {
    throw ConfigError({}, fmt::format("there is no launcher {}", quote(name)),
                      "allowed: torchrun, slurm, kubernetes");
  }
  return static_cast<Launcher>(found - launcher_names.begin());
}

std::string with_launcher(const std::string& script, Launcher launcher, const Scenario& scenario,
                          const ParallelPlan& plan, const Site& site) {
  if (launcher == Launcher::torchrun) return script;
  const bool started = script.find("\n#SBATCH ") != std::string::npos;
  const std::int64_t each = std::min(scenario.cluster.devices_per_node, plan.devices());
  const Job job{job_name(scenario), plan.devices() / each, each, site};
  // DeepSpeed's launcher starts the processes of all nodes from the first.
  if (!started && launcher == Launcher::slurm && script.find("\ndeepspeed ") != std::string::npos)
    return with_slurm_head(script, job);
  if (started || script.find("\ntorchrun ") == std::string::npos) {
    throw ConfigError({},
                      fmt::format("the script does not start its processes with torchrun alone: "
                                  "it cannot be launched by {}",
                                  launcher_names[static_cast<std::size_t>(launcher)]),
                      "export it without --launcher");
  }
  return launcher == Launcher::slurm ? for_slurm(script, job) : for_kubernetes(script, job);
}

std::string launcher_note(const std::string& script) {
  std::string open;
  for (const auto& [line, key] :
       {std::pair{"#SBATCH --partition=REPLACE", "queue"},
        std::pair{"queue-name: REPLACE", "queue, which Kueue alone reads"},
        std::pair{"image: REPLACE", "image, one with the framework"},
        std::pair{"workingDir: REPLACE", "folder, where its code is there"},
        std::pair{", REPLACE: 1", "rdma, the resource of the network adapters"}}) {
    if (script.find(line) != std::string::npos) {
      open += fmt::format("{}{}", open.empty() ? "" : "; ", key);
    }
  }
  return open.empty() ? "" : "REPLACE stands for what --site KEY=VALUE names: " + open;
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
