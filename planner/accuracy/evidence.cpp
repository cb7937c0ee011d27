#include "planner/accuracy/evidence.hpp"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <sstream>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

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
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

namespace key = costmodel::key;

Key<Measured> figure(std::string_view name, std::optional<double> Measured::*field,
                     Dimension dimension, double least, double most, std::string_view help) {
  return key::special<Measured>(
      name, [=] { return costmodel::number_text(dimension, least, most); }, help,
      [=](MapReader& reader, Measured& measured) {
        measured.*field = reader.number(name, dimension, least, most);
      });
}

const Keys<Measured>& measured_rows() {
  static const auto keys = key::rows<Measured>(
      figure("iteration_s", &Measured::iteration, Dimension::time, 1e-9, 1e9,
             "seconds of an iteration"),
      figure("peak_memory_bytes", &Measured::peak_memory, Dimension::size, 1e6, 1e15,
             "peak of a device, as the stack's log counts it"),
      figure("peak_allocated_bytes", &Measured::peak_allocated, Dimension::size, 1, 1e15,
             "what PyTorch's tensors took at the peak (max_memory_allocated)"),
      key::flag<Measured>("fits", &Measured::fits, "whether the run fitted in memory"));
  return keys;
}

const Keys<KindSeconds>& kind_rows() {
  static const auto keys = [] {
    Keys<KindSeconds> all;
    for (std::size_t i = 0; i + 1 < kind_keys.size(); ++i) {
      all.push_back(key::special<KindSeconds>(
          kind_keys[i], [] { return costmodel::number_text(Dimension::time, 0, 1e9); },
          "seconds of an iteration in kernels of that kind",
          [i](MapReader& reader, KindSeconds& kinds) {
            kinds[i] = reader.number(kind_keys[i], Dimension::time, 0, 1e9).value_or(0);
          }));
    }
    return all;
  }();
  return keys;
}

// What the file leaves out of the iteration is in no kernel.
void read_kinds(const Value& map, EvidenceRun& run) {
  KindSeconds kinds{};
  costmodel::read_map(map, "kinds", kind_rows(), kinds);
  const double all = std::accumulate(kinds.begin(), kinds.end(), 0.0);
  if (!run.measured.iteration || all > *run.measured.iteration) {
    throw ConfigError(map.mark, "kinds take longer than the iteration",
                      "seconds of one iteration, of kernels that do not overlap");
  }
  kinds.back() = *run.measured.iteration - all;
  run.kinds = kinds;
}

// `measured` stands before what is compared with it.
const Keys<EvidenceRun>& run_rows() {
  static const auto keys = [] {
    auto measured =
        key::required(key::map<EvidenceRun>("measured", &EvidenceRun::measured, measured_rows()));
    measured.help = "what was measured";
    auto all = key::rows<EvidenceRun>(
        key::required(key::text<EvidenceRun>("id", &EvidenceRun::id, "the run's name")), measured,
        Key<EvidenceRun>{"kinds", "", key::fixed_text("a map"),
                         [](MapReader& reader, EvidenceRun& run) {
                           if (const Value* kinds = reader.optional("kinds"))
                             read_kinds(*kinds, run);
                         },
                         [] { return costmodel::described(kind_rows(), "."); }},
        key::text<EvidenceRun>("contradicted", &EvidenceRun::contradicted,
                               "how the source's own figures contradict each other"),
        key::text<EvidenceRun>("unstated", &EvidenceRun::unstated,
                               "what memory depends on and the source leaves open"),
        key::flag<EvidenceRun>("decides", &EvidenceRun::decides,
                               "whether constants are fitted to it; absent: true"));
    for (const char* part : {"model", "cluster", "training", "plan", "search"}) {
      all.push_back(key::special<EvidenceRun>(part, key::fixed_text("as in a scenario"),
                                              "of the run",
                                              [part](MapReader& reader, EvidenceRun& run) {
                                                if (const Value* value = reader.optional(part))
                                                  run.scenario.set(part, *value);
                                              }));
    }
    for (const char* note : {"reported", "where", "confidence", "notes", "flags"})
      all.push_back(key::note<EvidenceRun>(note, "for people"));
    return all;
  }();
  return keys;
}

EvidenceRun read_run(const Value& map) {
  EvidenceRun run;
  run.scenario.kind = Value::Kind::map;
  run.scenario.mark = map.mark;
  costmodel::read_map(map, "run", run_rows(), run);
  const Measured& m = run.measured;
  if (!m.iteration && !m.peak_memory && !m.peak_allocated && !m.fits) {
    throw ConfigError(map.find("measured")->mark, fmt::format("run {} measured nothing", run.id),
                      "write what was measured: iteration_s, peak_memory_bytes, "
                      "peak_allocated_bytes or fits");
  }
  return run;
}

// An evidence file, of training or of serving.
struct WrittenFile {
  const Value* defaults = nullptr;
  const Value* runs = nullptr;
  int year = 0;
};

// The first year of this century in a text: four digits; 0: none.
int year_in(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  for (auto at = text.find_first_of(digits); at != text.npos; at = text.find_first_of(digits, at)) {
    const auto end = std::min(text.find_first_not_of(digits, at), text.size());
    const std::string number(text.substr(at, end - at));
    if (number.size() == 4 && number.starts_with("20")) return std::stoi(number);
    at = end;
  }
  return 0;
}

// In which a source measured, by its date or its title.
int year_of_source(const Value& source) {
  for (const char* key : {"date", "title"}) {
    const Value* text = source.is_map() ? source.find(key) : nullptr;
    const int year = text != nullptr ? year_in(text->text) : 0;
    if (year > 0) return year;
  }
  return 0;
}

const Keys<WrittenFile>& file_rows() {
  static const auto keys = key::rows<WrittenFile>(
      key::special<WrittenFile>(
          "source", key::fixed_text("text, or a map of title, ref and date"),
          "what published the runs, for people; a year in its date or title chooses between "
          "versions of a stack (stack.earlier)",
          [](MapReader& reader, WrittenFile& file) {
            if (const Value* source = reader.optional("source"))
              file.year = year_of_source(*source);
          }),
      key::note<WrittenFile>("notes", "for people"),
      key::special<WrittenFile>("defaults", key::fixed_text("a map"), "merged under every run",
                                [](MapReader& reader, WrittenFile& file) {
                                  file.defaults = reader.optional("defaults");
                                }),
      key::required(
          key::list<WrittenFile>("runs", run_rows(), "the measured runs",
                                 [](const Value& list, WrittenFile& file) { file.runs = &list; })));
  return keys;
}

void read_written(const std::string& file, std::vector<WrittenRun>& runs) {
  const Value root = costmodel::load_yaml(file, costmodel::measurement_limits);
  WrittenFile written;
  costmodel::read_map(root, "evidence", file_rows(), written);
  std::set<std::string> ids;
  for (const Value& run : written.runs->items) {
    const Value* id = run.find("id");
    if (id != nullptr && id->is_scalar() && !ids.insert(id->text).second) {
      throw ConfigError(id->mark, fmt::format("two runs have the id {}", quote(id->text)),
                        "give each run an id of its own");
    }
    runs.push_back({costmodel::stem_of(file),
                    written.defaults != nullptr ? merged(*written.defaults, run) : run,
                    written.year});
  }
}

}  // namespace

std::vector<costmodel::KeyText> evidence_keys() {
  return costmodel::described(file_rows(), "evidence.");
}

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
    all.back().year = written.year;
  }
  return all;
}

Scenario scenario_of(const EvidenceRun& run, const ConfigPath& path) {
  Scenario scenario = costmodel::read_scenario(run.scenario, run.id, path);
  const costmodel::EarlierStack& earlier = scenario.training.stack.earlier;
  if (run.year == 0 || run.year > earlier.until) return scenario;
  Value root = run.scenario;
  Value* stack = root.find("training")->find("stack");
  if (stack != nullptr && stack->is_map()) stack = stack->find("base");
  if (stack == nullptr) return scenario;
  stack->text = earlier.stack;
  return costmodel::read_scenario(root, run.id, path);
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
