#include "planner/frameworks/read_job.hpp"

#include "costmodel/base/input_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/import_overrides.hpp"
#include "planner/frameworks/import_torchtitan.hpp"
#include "planner/frameworks/json_import_deepspeed.hpp"
#include "planner/frameworks/launcher.hpp"
#include "planner/frameworks/megatron_log.hpp"
#include "planner/frameworks/megatron_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

JobFormat format_of_text(const std::string& text, const std::string& file) {
  if (holds_megatron_log(text)) return JobFormat::megatron;
  if (holds_deepspeed(text)) return JobFormat::deepspeed;
  if (holds_torchtitan(text)) return JobFormat::torchtitan;
  const bool scenario = has_line(text, "model:") || has_line(text, "training:");
  if (scenario && has_line(text, "plan:")) return JobFormat::scenario;
  if (holds_megatron_flags(text)) return JobFormat::megatron;
  if (scenario) return JobFormat::scenario;
  if (holds_nemo_overrides(text)) return JobFormat::nemo;
  if (holds_bridge_overrides(text)) return JobFormat::bridge;
  throw ConfigError(
      {file, 0, 0}, "is no description of a job that is known here",
      "known: a scenario, a launch script, argument list or log of Megatron-LM, overrides "
      "of Megatron-Bridge or NeMo, a ds_config.json, a TOML or Python configuration of torchtitan");
}

// The text, or the script that it brings to Kubernetes.
std::string script_in(const std::string& file) {
  const std::string text = read_file(file, measurement_limits);
  return script_of_job(text, file).value_or(text);
}

}  // namespace

JobFormat format_of(const std::string& file) { return format_of_text(script_in(file), file); }

ImportedJob read_job(const std::string& file) {
  const std::string text = script_in(file);
  const JobFormat format = format_of_text(text, file);
  if (format == JobFormat::deepspeed) return import_deepspeed(text, file);
  if (format == JobFormat::bridge || format == JobFormat::nemo) return import_overrides(text, file);
  if (format == JobFormat::torchtitan) return import_torchtitan(text, file);
  if (format == JobFormat::scenario) {
    ImportedJob job;
    job.scenario = parse_yaml(text, file);
    return job;
  }
  return import_megatron(holds_megatron_log(text) ? read_megatron_log(text, file)
                                                  : read_megatron_script(text, file));
}

}  // namespace planner
