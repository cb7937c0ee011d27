#include "calibrate/commands/cpu_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/commands/for_command.hpp"
#include "calibrate/profile/cpu_profile.hpp"
#include "costmodel/base/error.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/device_reader.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// The device's file as seen from the cluster's folder.
std::string device_beside(const std::string& device, const std::string& cluster) {
  return "./" + relative_path(device, folder_of(absolute_path(cluster)));
}

// The header of the part file; measurements under another header are not reused.
std::string header_of(const CpuRequest& request, const Machine& machine, const Ranks& ranks) {
  return fmt::format("shardplan calibrate --backend cpu{}{}; {}; {} cores; {} {}; {}; {}",
                     request.quick ? " --quick" : "", shapes_asked(request), machine.processor,
                     machine.cores, ranks.count, ranks.are, machine.products, machine.compiler);
}

// The profile that is given, whose pace is that of what is added to it.
std::optional<Profile> given_profile(const CpuRequest& request, const std::string& processor) {
  if (request.profile.empty()) return std::nullopt;
  Profile profile = profile_named(request.profile, request.path);
  require_measured_on(profile, processor);
  require_writable(request.out);  // which is not the profile itself
  if (profile.device.yardstick > Seconds(0)) set_pace_reference(profile.device.yardstick);
  return profile;
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

std::string shapes_asked(const CpuRequest& request) {
  return (request.profile.empty() ? "" : " --profile " + request.profile) +
         (request.scenario.empty() ? "" : " --for " + request.scenario);
}

std::string lacking_of(const CpuRequest& request, const runtime::Backend& backend) {
  const Subject subject = subject_of(request.scenario, request.path, backend);
  const Profile profile = profile_named(request.profile, request.path);
  return lacking_text(lacking_shapes(subject, profile.device), subject.precision(), profile.name,
                      subject.name);
}

std::string calibrate_cpu(const CpuRequest& request) {
  const Machine machine = this_machine();
  const Ranks ranks = request.ranks.value_or(Ranks{.count = machine.cores});
  std::optional<Subject> subject;
  if (!request.scenario.empty()) {
    subject = subject_of(request.scenario, request.path, runtime::backend_named("threads"));
    require_memory(*subject);
  }
  const auto given = given_profile(request, machine.processor);
  PartFile part(request.out + ".part", header_of(request, machine, ranks));
  for (const Record& r : part.records())
    if (r.op == "yardstick") set_pace_reference(r.time.median);
  const Clock clock = wall_clock();
  const Seconds begin = clock(), asked(60 * request.minutes);
  const auto run = [&](const std::vector<Task>& tasks, Seconds time) {
    run_tasks(tasks, time, part, clock,
              [&](std::size_t done, const std::string& name, double left) {
                if (request.progress) request.progress(done, tasks.size(), name, left);
              });
  };
  Value device;
  if (given) {
    device = given->value;
  } else {
    run(cpu_tasks(request.quick, machine.cores, ranks), asked * (subject ? 0.75 : 1));
    device = device_profile(part.records(), machine, request.command);
  }
  if (subject) {
    const DeviceSpec known = read_device(device, request.out);
    request.message(lacking_text(lacking_shapes(*subject, known), subject->precision(),
                                 given ? given->name : "the grid", subject->name));
    run(cpu_shape_tasks(*subject, known, request.quick),
        max(asked - (clock() - begin), asked * 0.25));
    note_shapes(device, part.records(), machine.date, request.command);
  }
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
