#include "planner/commands/validate_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <functional>

#include "costmodel/base/console.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/cli/terminal.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/engine.hpp"
#include "planner/accuracy/json_accuracy.hpp"
#include "planner/accuracy/json_serving_runs.hpp"
#include "planner/accuracy/operator_timings.hpp"
#include "planner/accuracy/peak_fit.hpp"
#include "planner/accuracy/published_plans_report.hpp"
#include "planner/accuracy/refit.hpp"
#include "planner/accuracy/residual_fit.hpp"
#include "planner/accuracy/runs_known_report.hpp"
#include "planner/accuracy/scorecard_html.hpp"
#include "planner/accuracy/scorecard_svg.hpp"
#include "planner/accuracy/scorecard_tables.hpp"
#include "planner/accuracy/serving_evidence.hpp"
#include "planner/accuracy/serving_fit.hpp"
#include "planner/accuracy/serving_residuals.hpp"
#include "planner/accuracy/serving_scorecard.hpp"
#include "planner/accuracy/traced_runs.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int missed_limit = 4;
constexpr int usually_known = 2;  // runs of a site, for which the table's intervals are made

// --fail-above: the command fails when `mean`, in per cent, is larger.
void limit_error(double mean, const std::string& what, const Session& session,
                 CommandResult& result) {
  if (session.options.fail_above <= 0 || mean <= session.options.fail_above) return;
  result.status = missed_limit;
  result.warnings.push_back(fmt::format("{}, {:.2f} %, is above --fail-above {:g}", what, mean,
                                        session.options.fail_above));
}

// Of a report that has neither a page nor a picture.
void require_rows(const Options& options, const std::string& what) {
  refuse_if(options.format == Format::html || options.format == Format::svg,
            what + " has no such --format", "allowed: text, json, csv, md");
}

RefitResult refitted(const Session& session, bool cross_validate, bool sources_alone = false) {
  const Options& options = session.options;
  const auto constants = read_constants(constants_file(options.fit, session.path), session.path);
  RefitRequest request{cross_validate, threads_of(options), {}, sources_alone};
  if (!options.quiet && isatty(STDERR_FILENO) == 1)
    request.progress = [](const std::string& words) { print_message(words + " ..."); };
  return refit(options.operands, constants, session.path, request);
}

CommandResult refit_constants(const Session& session) {
  refuse_if(session.options.format != Format::text && session.options.format != Format::json,
            "validate with constants refitted has no such --format", "allowed: text, json");
  CommandResult result;
  const bool left_out = session.options.leave_one_source_out;
  const RefitResult fitted = refitted(session, left_out);
  result.text = session.options.format == Format::json ? refit_json(fitted) : to_string(fitted);
  limit_error(fitted.means(left_out ? FittedTo::other_sources : FittedTo::all).sources,
              left_out ? "the mean error over sources left out" : "the mean error over sources",
              session, result);
  return result;
}

// --runs-known. The rows are predicted before the fit leaves its constants in the configurations.
CommandResult with_runs_known(const Session& session) {
  const Options& options = session.options;
  require_rows(options, "validate --runs-known");
  const auto rows = validate(options.operands, session.path);
  const RunsKnown known = runs_known(source_runs(rows, refitted(session, true, true)),
                                     options.runs_known, threads_of(options));
  refuse_if(known.by_source.size() + known.small.size() < 2,
            "--runs-known needs runs of two sources or more",
            "each is predicted by what the others say: name more evidence");
  if (known.by_source.empty()) {
    throw ConfigError(
        {}, fmt::format("shardplan: --runs-known {} leaves no run to predict", options.runs_known),
        "name evidence with more runs on one device by one stack, or give less");
  }
  CommandResult result;
  const std::string table = printed(known_table(known), options.format, session.style.style.width);
  const bool prose = options.format == Format::text || options.format == Format::md;
  result.text = prose ? known_report(known, table) : table;
  limit_error(known.mean.time, "the mean error over sources", session, result);
  return result;
}

// Progress on one line, overwritten in place.
std::function<void(std::size_t, std::size_t)> search_progress(bool quiet) {
  if (quiet || !overwrites_lines(STDERR_FILENO)) return {};
  return [](std::size_t done, std::size_t all) {
    print_progress(fmt::format("{} of {} searches and predictions", done, all));
    if (done == all) print_message("");
  };
}

// Here --fail-above limits not the mean error but how much slower the planner's best may be.
CommandResult against_planner(const Session& session) {
  const Options& options = session.options;
  require_rows(options, "validate --against-planner");
  CommandResult result;
  std::vector<std::string> left_out;
  const auto runs = read_evidence_runs(options.operands, &left_out);
  for (const auto& file : left_out) result.warnings.push_back(file + " has no runs: left out");
  const ExpertComparison compared = compare_with_experts(
      runs, session.path,
      {options.strategy == "alpa", threads_of(options), search_progress(options.quiet)});
  limit_error(worst_loss_pct(compared),
              "what the planner's best is predicted slower than a plan that was run", session,
              result);
  if (options.format == Format::json) {
    result.text = expert_json(compared);
  } else if (options.format == Format::csv) {
    result.text = to_csv(expert_rows(compared));
  } else {
    result.text = expert_report(compared, options.rows, session.style);
    if (!options.notes.empty()) result.text += "\n" + printable_lines(read_file(options.notes));
  }
  return result;
}

// Of evidence of serving; `--leave-one-source-out` predicts each source by the others.
CommandResult validate_serving(const Session& session) {
  const Options& options = session.options;
  require_rows(options, "validate of serving");
  auto runs = read_serving_runs(options.operands, session.path);
  const int threads = threads_of(options);
  ServingFit fit = find_serving_fit(session.path);
  const bool fits = options.leave_one_source_out || !options.write_residuals.empty();
  if (fits) {
    if (!options.write_residuals.empty()) fit = fit_serving(runs, threads);
    leave_one_source_out(runs, threads);
    set_intervals(runs, fit);
    if (!options.write_residuals.empty())
      write_file(options.write_residuals, to_yaml(fit_value(fit)));
  } else {
    for (ServingRun& run : runs) predict(run);
  }
  CommandResult result;
  switch (options.format) {
    case Format::json: result.text = serving_runs_json(runs); break;
    case Format::csv: result.text = to_csv(serving_run_table(runs)); break;
    default: result.text = serving_scorecard(runs, fit, fits, options.rows, session.style);
  }
  return result;
}

// Evidence of training and of serving in one command: two scorecards, one after the other.
CommandResult validate_both(const Session& session, const std::vector<std::string>& training,
                            const std::vector<std::string>& serving) {
  const Options& options = session.options;
  refuse_if(options.format != Format::text && options.format != Format::md,
            "validate of training and serving at once has no such --format",
            "allowed: text, md; or name one kind of evidence");
  refuse_if(options.fits_constants() || options.against_planner,
            "constants are fitted to one kind of evidence",
            "name runs of training, or of serving, not both");
  Options of_training = options, of_serving = options;
  of_training.operands = training;
  of_serving.operands = serving;
  of_serving.leave_one_source_out = true;
  CommandResult result = validate_command({of_training, session.style, session.path});
  result.text += "\n" + validate_serving({of_serving, session.style, session.path}).text;
  return result;
}

// `rows`, and those of --peaks.
std::vector<ValidationRow> with_peaks(std::vector<ValidationRow> rows, const Session& session) {
  if (session.options.peaks.empty()) return rows;
  for (auto& row : validate(session.options.peaks, session.path)) rows.push_back(std::move(row));
  return rows;
}

// --traces.
CommandResult with_traces(const Session& session) {
  const Options& options = session.options;
  require_rows(options, "validate --traces");
  const auto groups =
      traced_groups(read_evidence_runs(options.operands), options.traces, session.path);
  CommandResult result;
  result.text = printed(traced_group_table(groups), options.format, session.style.style.width);
  double mean = 0;
  for (const TracedGroup& group : groups)
    mean += group.others_after / static_cast<double>(groups.size());
  limit_error(mean, "the mean error of the others", session, result);
  return result;
}

// Of a table of operators that were timed one by one, as its name ends.
constexpr std::string_view operator_tables = ".csv";

CommandResult validate_operators(const Session& session) {
  const Options& options = session.options;
  require_rows(options, "validate of operators");
  constexpr std::string_view key = "device=";
  std::string device;
  for (const std::string& set : options.assignments)
    if (set.starts_with(key)) device = set.substr(key.size());
  refuse_if(options.operands.size() > 1 || device.empty(),
            "validate of operators needs one table and its device",
            "--set device=h100-sxm5-80gb, a file in configs/devices");
  refuse_if(options.fits_constants() || options.against_planner || !options.traces.empty(),
            "operators that were timed one by one are priced as they are",
            "leave out what is of runs: --fit, --leave-one-source-out, --runs-known, "
            "--write-residuals, --against-planner, --traces");
  const auto timings = operator_timings(options.operands.front(), device, session.path);
  const auto groups = operator_groups(timings);
  if (groups.empty()) {
    throw ConfigError({options.operands.front(), 0, 0},
                      fmt::format("has no operator that is priced, timed on {}", device),
                      "name the device of its rows with --set device=NAME");
  }
  CommandResult result;
  result.text = printed(options.rows ? operator_table(timings) : operator_table(groups),
                        options.format, session.style.style.width);
  double mean = 0;
  for (const OperatorGroup& group : groups) mean += group.mean / static_cast<double>(groups.size());
  limit_error(mean, "the mean error of the groups of operators", session, result);
  return result;
}

}  // namespace

CommandResult validate_command(const Session& session) {
  if (session.options.operands.front().ends_with(operator_tables))
    return validate_operators(session);
  std::vector<std::string> training, serving;
  for (const std::string& operand : session.options.operands)
    (is_serving_evidence({operand}) ? serving : training).push_back(operand);
  if (!training.empty() && !serving.empty()) return validate_both(session, training, serving);
  if (training.empty()) return validate_serving(session);
  if (session.options.runs_known > 0) return with_runs_known(session);
  if (!session.options.traces.empty()) return with_traces(session);
  if (session.options.fits_constants() && session.options.write_residuals.empty())
    return refit_constants(session);
  if (session.options.against_planner) return against_planner(session);
  std::vector<std::string> left_out;
  const auto rows = validate(session.options.operands, session.path, &left_out);
  CommandResult result;
  for (const auto& file : left_out) result.warnings.push_back(file + " has no runs: left out");
  limit_error(summary_of(rows).macro_mape, "the mean error over sources", session, result);
  std::optional<ResidualTable> written;
  if (!session.options.write_residuals.empty()) {
    const ErrorBand unknown;
    const double pairs = pair_spread_of(rows).value_or(unknown.pair_spread);
    auto peaks = fit_peaks(with_peaks(rows, session));  // by the constants as they are
    const RefitResult fitted = refitted(session, true);
    written = fit_residuals(fitted, pairs);
    refuse_if(!written, "--write-residuals needs a run that can be predicted",
              "name evidence with iteration_s");
    const RunsKnown known =
        runs_known(source_runs(rows, fitted), usually_known, threads_of(session.options));
    if (known.by_source.size() > 1) written->sites = site_spread(known);
    written->peaks = std::move(peaks);
    write_file(session.options.write_residuals, to_yaml(*written));
  }
  const ResidualTable* kept = written ? &*written : find_residuals(session.path);
  const std::string notes = session.options.notes.empty() ? "" : read_file(session.options.notes);
  const bool every = session.options.rows;
  switch (session.options.format) {
    case Format::json: result.text = validation_json(rows, kept); break;
    case Format::csv: result.text = to_csv(validation_rows(rows)); break;
    case Format::html: result.text = scorecard_html(rows, every, notes, kept); break;
    case Format::svg: result.text = scatter_svg(rows); break;
    case Format::text:
    case Format::yaml:
    case Format::md: {
      result.text = validation_report(rows, every, session.style, kept);
      if (!notes.empty()) result.text += "\n" + printable_lines(notes);
      break;
    }
  }
  return result;
}

}  // namespace planner
