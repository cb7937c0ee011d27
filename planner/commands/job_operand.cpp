#include "planner/commands/job_operand.hpp"

#include <filesystem>

#include "costmodel/config/override.hpp"
#include "planner/frameworks/read_job.hpp"

namespace planner {

using namespace costmodel;

JobOperand read_job_operand(const Session& session, const std::string& operand,
                            std::vector<std::string>& told) {
  const Options& options = session.options;
  const std::string file = scenario_file(operand, session.path);
  if (format_of(file) == JobFormat::scenario && options.cluster.empty()) {
    Value written = loaded(session.path, file);
    for (const auto& assignment : options.assignments)
      assign_path(written, assignment, mark_of_argument("--set", assignment));
    return {load_scenario(file, session.path, options.assignments), std::move(written)};
  }
  ImportedJob job = read_job(file);
  if (!options.cluster.empty()) set_cluster(job, options.cluster);
  for (const auto& assignment : options.assignments)
    set_key(job, assignment, mark_of_argument("--set", assignment));
  if (!job.missing.empty()) {
    const MissingKey& key = job.missing.front();
    throw ConfigError({file, 0, 0}, "does not say " + key.key, key.remedy);
  }
  for (const auto& note : job.notes) told.push_back("note: " + note);
  for (const auto& word : job.left_out) told.push_back("note: left out: " + word);
  return {read_scenario(job.scenario, std::filesystem::path(file).stem().string(), session.path),
          job.scenario};
}

}  // namespace planner
