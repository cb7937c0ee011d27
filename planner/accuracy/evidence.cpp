#include "planner/accuracy/evidence.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Scenario;
using costmodel::Value;

namespace {

// Whether a file of a folder contains runs, and is not a file that runs refer to.
bool has_runs(const std::string& file) {
  std::istringstream in(costmodel::read_file(file, costmodel::measurement_limits));
  for (std::string line; std::getline(in, line);)
    if (line.rfind("runs:", 0) == 0) return true;
  return false;
}

// The named files, and the files with runs in named folders; the names of a folder's other files go
// to `left_out`.
std::vector<std::string> evidence_files(const std::vector<std::string>& operands,
                                        std::vector<std::string>* left_out) {
  std::vector<std::string> files;
  for (const auto& operand : operands) {
    if (!costmodel::is_folder(operand)) {
      files.push_back(operand);
      continue;
    }
    std::vector<std::string> inside;
    for (const costmodel::FolderEntry& entry : costmodel::entries_of(operand)) {
      if (!entry.regular || !entry.name.ends_with(".yaml")) continue;
      const std::string file = costmodel::joined_path(operand, entry.name);
      if (has_runs(file)) {
        inside.push_back(file);
      } else if (left_out != nullptr) {
        left_out->push_back(file);
      }
    }
    if (inside.empty()) {
      throw ConfigError({operand, 0, 0}, "holds no *.yaml with runs",
                        "name a folder of evidence files");
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

Measured read_measured(const Value& map) {
  costmodel::MapReader reader(map, "measured");
  Measured measured;
  measured.iteration = reader.number("iteration_s", costmodel::Dimension::time, 1e-9, 1e9);
  measured.peak_memory = reader.number("peak_memory_bytes", costmodel::Dimension::size, 1, 1e15);
  measured.peak_allocated =
      reader.number("peak_allocated_bytes", costmodel::Dimension::size, 1, 1e15);
  measured.fits = reader.boolean("fits");
  reader.finish();
  return measured;
}

// What the file leaves out of the iteration is in no kernel.
KindSeconds read_kinds(const Value& map, const Measured& measured) {
  costmodel::MapReader reader(map, "kinds");
  KindSeconds kinds{};
  double all = 0;
  for (std::size_t i = 0; i + 1 < kinds.size(); ++i) {
    kinds[i] = reader.number(kind_keys[i], costmodel::Dimension::time, 0, 1e9).value_or(0);
    all += kinds[i];
  }
  reader.finish();
  if (!measured.iteration || all > *measured.iteration) {
    throw ConfigError(map.mark, "kinds take longer than the iteration",
                      "seconds of one iteration, of kernels that do not overlap");
  }
  kinds.back() = *measured.iteration - all;
  return kinds;
}

EvidenceRun read_run(const Value& map) {
  costmodel::MapReader reader(map, "run");
  EvidenceRun run;
  run.id = read_text(reader.required("id"), "id");
  run.measured = read_measured(reader.required("measured"));
  if (const Value* kinds = reader.optional("kinds")) run.kinds = read_kinds(*kinds, run.measured);
  run.contradicted = reader.text("contradicted").value_or("");
  run.unstated = reader.text("unstated").value_or("");
  run.decides = reader.boolean("decides").value_or(true);
  run.scenario.kind = Value::Kind::map;
  run.scenario.mark = map.mark;
  for (const auto* key : {"model", "cluster", "training", "plan", "search"}) {
    if (const Value* part = reader.optional(key)) run.scenario.set(key, *part);
  }
  for (const auto* key : {"reported", "where", "confidence", "notes", "flags"})
    reader.optional(key);
  reader.finish();
  return run;
}

void read_written(const std::string& file, std::vector<WrittenRun>& runs) {
  const Value root = costmodel::load_yaml(file, costmodel::measurement_limits);
  costmodel::MapReader reader(root, "evidence");
  for (const auto* key : {"source", "notes"}) reader.optional(key);
  const Value* defaults = reader.optional("defaults");
  const Value& list = reader.required("runs");
  reader.finish();
  for (const Value& run : list.items) {
    runs.push_back({costmodel::stem_of(file), defaults != nullptr ? merged(*defaults, run) : run});
  }
}

}  // namespace

std::string_view kind_name(std::size_t kind) {
  return kind < costmodel::kernel_kind_names.size() ? costmodel::kernel_kind_names[kind]
                                                    : "in no kernel";
}

std::vector<WrittenRun> written_runs(const std::vector<std::string>& operands,
                                     std::vector<std::string>* left_out) {
  std::vector<WrittenRun> all;
  for (const auto& file : evidence_files(operands, left_out)) read_written(file, all);
  return all;
}

std::vector<EvidenceRun> read_evidence_runs(const std::vector<std::string>& operands,
                                            std::vector<std::string>* left_out) {
  std::vector<EvidenceRun> all;
  for (const WrittenRun& written : written_runs(operands, left_out)) {
    all.push_back(read_run(written.run));
    all.back().source = written.source;
  }
  return all;
}

void take_defaults(Scenario& scenario) {
  costmodel::PlanRequest& plan = scenario.plan;
  const costmodel::StackSpec& stack = scenario.training.stack;
  const std::int64_t pp = plan.pp.value_or(1);
  if (pp == 1) return;
  const auto settle = [&plan](std::string_view key, auto& field, std::int64_t value) {
    if (value == 0 || !plan.is_auto(key)) return;
    field = static_cast<int>(value);
    std::erase(plan.automatic, key);
  };
  settle("vpp", plan.vpp, stack.defaults.stages);
  const std::int64_t ranks = scenario.cluster.devices / plan.tp.value_or(1) / plan.cp.value_or(1);
  const std::int64_t parts = ranks * stack.defaults.micro_batches;  // dp · pp · micro-batches / pp
  if (parts > 0 && scenario.training.global_batch % parts == 0)
    settle("micro_batch", plan.micro_batch, scenario.training.global_batch / parts);
}

}  // namespace planner
