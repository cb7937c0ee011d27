#include "calibrate/commands/cpu_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/profile/cpu_profile.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// The device's file as seen from the cluster's folder.
std::string device_beside(const std::string& device, const std::string& cluster) {
  return "./" + relative_path(device, folder_of(absolute_path(cluster)));
}

// The header of the part file; measurements under another header are not reused.
std::string header_of(const CpuRequest& request, const Machine& machine, const Ranks& ranks) {
  return fmt::format("shardplan calibrate --backend cpu{}; {}; {} cores; {} {}; {}; {}",
                     request.quick ? " --quick" : "", machine.processor, machine.cores, ranks.count,
                     ranks.are, machine.products, machine.compiler);
}

}  // namespace

void run_tasks(const std::vector<Task>& tasks, Seconds time, PartFile& part, const Clock& clock,
               const std::function<void(std::size_t, const std::string&, double)>& progress) {
  double shares = 0;
  for (const Task& task : tasks) shares += part.has(task.name) ? 0 : task.share;
  const Seconds begin = clock();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    if (part.has(task.name)) continue;
    const Seconds left = max(time - (clock() - begin), Seconds(0));
    if (task.repeated && left == Seconds(0)) continue;
    if (progress) progress(i, task.name, left.value);
    StopRule rule;
    rule.longest = left * (task.share / shares);
    part.add(task.run(rule));
    shares = std::max(shares - task.share, 1e-9);
  }
}

std::string longer_than_asked(Seconds asked, Seconds took) {
  if (took <= 1.1 * asked) return "";
  return fmt::format("; {:.0f} s were asked for, but every point is measured once, however long",
                     asked.value);
}

std::string calibrate_cpu(const CpuRequest& request) {
  const Machine machine = this_machine();
  const Ranks ranks = request.ranks.value_or(Ranks{.count = machine.cores});
  const auto tasks = cpu_tasks(request.quick, machine.cores, ranks);
  PartFile part(request.out + ".part", header_of(request, machine, ranks));
  for (const Record& r : part.records())
    if (r.op == "yardstick") set_pace_reference(r.time.median);
  const Clock clock = wall_clock();
  const Seconds begin = clock(), asked(60 * request.minutes);
  run_tasks(tasks, asked, part, clock, [&](std::size_t done, const std::string& name, double left) {
    if (request.progress) request.progress(done, tasks.size(), name, left);
  });
  const auto device = device_profile(part.records(), machine, request.command);
  write_file(request.out, to_yaml(device));
  if (!request.cluster_out.empty()) {
    const auto cluster = cluster_profile(part.records(), machine, ranks, request.command,
                                         device_beside(request.out, request.cluster_out));
    write_file(request.cluster_out, to_yaml(cluster));
  }
  part.remove();
  const Seconds took = clock() - begin;
  return fmt::format("{} measurements of {} ({} taken up) in {:.0f} s{}; products by {}\n",
                     part.records().size(), machine.processor, part.taken_up(), took.value,
                     longer_than_asked(asked, took), machine.products);
}

}  // namespace calibrate
