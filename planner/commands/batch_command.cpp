#include "planner/commands/batch_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <sstream>
#include <system_error>
#include <thread>

#include "costmodel/base/console.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/fingerprint.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/cli/terminal.hpp"
#include "planner/batch/batch_jobs.hpp"
#include "planner/batch/child.hpp"
#include "planner/batch/json_index_page.hpp"
#include "planner/batch/json_journal.hpp"
#include "planner/batch/json_row.hpp"
#include "planner/commands/interruption.hpp"
#include "planner/commands/progress.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr int job_failed = 4;

// What was left by writes that a kill cut short: see costmodel/base/output_file.
void remove_leftovers(const std::string& folder) {
  for (const FolderEntry& entry : entries_of(folder)) {
    if (entry.regular && entry.name.starts_with(".shardplan-"))
      remove_file(joined_path(folder, entry.name));
  }
}

// The place of a file of the batch's own: what stands there and is none (a link, a pipe, a device)
// is removed, so that nothing outside of the folder is written.
const std::string& own_place(const std::string& path) {
  if (!is_own_file(path)) remove_file(path);
  return path;
}

constexpr ReadLimits report_limits{.bytes = std::size_t{256} << 20, .own = true};

// The messages below the table, each on a line of its own: a column has no room for them.
std::string messages_below(Table& table) {
  std::string lines;
  for (auto& row : table.rows) {
    if (!row.back().empty()) lines += printable(row.front() + ": " + row.back()) + "\n";
    row.pop_back();
  }
  table.columns.pop_back();
  return lines.empty() ? "" : "\n" + lines;
}

class Batch {
 public:
  Batch(const Session& session, std::vector<BatchJob> jobs)
      : options_(session.options),
        width_(session.style.style.width),
        folder_(options_.folder),
        journal_(folder_, options_.shard),
        program_(program_file()),
        program_print_(file_fingerprint(program_)),
        jobs_(std::move(jobs)),
        rows_(jobs_.size()) {
    // Of a folder that other shards write into too, what they write now is none.
    if (options_.shard.is_all()) remove_leftovers(folder_);
  }

  void run() {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int wanted = options_.jobs > 0 ? options_.jobs : cores;
    std::vector<std::jthread> threads;
    try {
      for (int i = 1; i < std::min<int>(wanted, static_cast<int>(jobs_.size())); ++i)
        threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // there are no more: those that there are share the work
    }
    work();
    threads.clear();
    if (told_) clear_progress();
    if (fault_) std::rethrow_exception(fault_);
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (rows_[i].empty())
        rows_[i] = index_row(jobs_[i].name, command_of(jobs_[i]), JobState::not_done, "", "");
    }
    if (options_.shard.is_all()) write_index();
  }

  CommandResult result() const {
    const Format format = options_.format;
    CommandResult result;
    result.status = failed_ > 0 ? job_failed : without_plan_ > 0 ? no_answer : 0;
    if (format == Format::json) {
      result.text = index_json(rows_);
    } else {
      Table table = index_table(rows_, format != Format::csv);
      const std::string messages = format == Format::text ? messages_below(table) : "";
      result.text = printed(table, format, width_) + messages;
    }
    result.warnings.push_back(fmt::format(
        "batch: {} scenarios: {} done now, {} unchanged since they were done, {} failed{}; {}",
        jobs_.size(), done_.load(), unchanged_.load(), failed_.load(),
        interruption_.came() ? "; " + interruption_.text() + ": the same command goes on" : "",
        options_.shard.is_all()
            ? "the index is " + shell_word(folder_ + "/index.html")
            : fmt::format("shard {} of {}: the same command without --shard makes the index",
                          options_.shard.index, options_.shard.count)));
    if (interruption_.came()) interruption_.tell("batch: " + interruption_.text(), result);
    return result;
  }

 private:
  std::string command_of(const BatchJob& job) const {
    return fmt::format("{}", fmt::join(job.words, " "));
  }
  std::string report_of(const BatchJob& job) const { return folder_ + "/" + job.name + ".json"; }
  std::string page_of(const BatchJob& job) const { return folder_ + "/" + job.name + ".html"; }

  // The command line of a job without its outputs.
  std::vector<std::string> arguments_of(const BatchJob& job) const {
    std::vector<std::string> all{"shardplan"};
    all.insert(all.end(), job.words.begin(), job.words.end());
    for (const auto& folder : options_.config_path)
      all.insert(all.end(), {"--config-path", folder});
    for (const auto& folder : options_.allow_path) all.insert(all.end(), {"--allow-path", folder});
    for (const auto& assignment : options_.assignments)
      all.insert(all.end(), {"--set", assignment});
    if (job.words.front() == "plan") all.emplace_back("--reproducible");
    all.insert(all.end(), {"--format", "json"});
    return all;
  }

  std::string key_of(const BatchJob& job) const {
    std::string all = program_print_ + "\n" + job.file;
    for (const auto& word : arguments_of(job)) all += "\n" + word;
    return fingerprint(all);
  }

  bool is_stopped() const {
    return interruption_.came() || fault_seen_ || (options_.fail_fast && failed_ > 0);
  }

  void work() {
    for (std::size_t i = next_++; i < jobs_.size() && !is_stopped(); i = next_++) {
      try {
        perform(i);
      } catch (...) {  // the folder cannot be written, or no process started: all ends
        const std::scoped_lock lock(mutex_);
        if (!fault_) fault_ = std::current_exception();
        fault_seen_ = true;
      }
      tell();
    }
  }

  void perform(std::size_t i) {
    const BatchJob& job = jobs_[i];
    if (!job.fault.empty()) return fail(i, job.fault);
    const std::string key = key_of(job), report = report_of(job);
    const JournalEntry* before =
        options_.force ? nullptr
                       : journal_.current(job.name, key, {job.file, report, page_of(job)});
    if (before != nullptr && take_up(i, *before)) return;
    const Stopwatch watch;
    const std::string list = fmt::format("{}/.shardplan-{}.inputs", folder_, fingerprint(job.name));
    for (const std::string& file : {report, page_of(job), list}) own_place(file);
    const bool foreign = !journal_.knows(job.name) && path_exists(report);
    auto arguments = arguments_of(job);
    arguments.insert(arguments.end(), {"--quiet", "--out", report, "--page", page_of(job),
                                       "--list-inputs", list, "--", job.file});
    const ChildEnd end = run_child(
        program_, arguments, [this] { return interruption_.came(); }, options_.each);
    if (end.stopped) return;
    const bool answered = end.status == 0 || end.status == no_answer;
    if (!answered || !is_own_file(report) || !is_own_file(list)) {
      remove_file(list);
      if (!foreign)  // the user's own, such as a model that the scenario names
        for (const std::string& file : {report, page_of(job)}) remove_file(file);
      return fail(i, message_of(end));
    }
    JournalEntry entry{.name = job.name,
                       .key = key,
                       .inputs = {},
                       .status = end.status,
                       .report = file_fingerprint(report),
                       .page = file_fingerprint(page_of(job))};
    std::istringstream files(read_file(list, {.bytes = std::size_t{16} << 20, .own = true}));
    for (std::string file; std::getline(files, file);) entry.inputs[file] = file_fingerprint(file);
    remove_file(list);
    rows_[i] = row_of(i, end.status);
    if (rows_[i].empty())  // a report too large to be read again
      rows_[i] = index_row(job.name, command_of(job), JobState::done, "", "");
    journal_.add(entry, watch.seconds());
    ++done_;
    if (end.status == no_answer) ++without_plan_;
  }

  // The line of a report that is there: it is made from the report each time, so that no figure is
  // taken from the journal. "" where it cannot be.
  std::string row_of(std::size_t i, int status) const {
    const BatchJob& job = jobs_[i];
    try {
      return index_row(job.name, command_of(job),
                       status == no_answer ? JobState::no_plan : JobState::done,
                       read_file(report_of(job), report_limits), "");
    } catch (const ConfigError&) {
      return "";
    } catch (const std::bad_alloc&) {  // a report that is none may be of any size
      return "";
    }
  }

  bool take_up(std::size_t i, const JournalEntry& before) {
    if (before.status != 0 && before.status != no_answer) return false;
    rows_[i] = row_of(i, before.status);
    if (rows_[i].empty()) return false;
    ++unchanged_;
    if (before.status == no_answer) ++without_plan_;
    return true;
  }

  std::string message_of(const ChildEnd& end) const {
    if (end.late) {
      return fmt::format("took longer than {}; give it more: --timeout, or less to search",
                         format_seconds(Seconds(options_.each.seconds)));
    }
    std::string text = end.errors;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (text.empty()) text = fmt::format("ended with status {}", end.status);
    return message_text(text);
  }

  void fail(std::size_t i, const std::string& message) {
    ++failed_;
    rows_[i] = index_row(jobs_[i].name, command_of(jobs_[i]), JobState::failed, "", message);
  }

  void write_index() const {
    const auto write = [this](const char* name, const std::string& text) {
      write_file(own_place(folder_ + "/" + name), text, LinkedOutput::refused);
    };
    write("index.json", versioned_json(index_json(rows_)));
    write("index.csv", to_csv(index_table(rows_, false)));
    write("index.html", index_page(index_json(rows_)));
  }

  void tell() {
    if (!told_) return;
    const std::scoped_lock lock(mutex_);
    const int ended = done_ + failed_ + unchanged_;
    const int left = static_cast<int>(jobs_.size()) - ended;
    const double each = done_ > 0 ? watch_.seconds() / done_ : 0;
    print_progress(fmt::format(
        "{} of {}{}{}", ended, jobs_.size(),
        failed_ > 0 ? fmt::format(", {} failed", failed_.load()) : "",
        done_ > 0 && left > 0 ? ", about " + format_seconds(Seconds(each * left)) + " left" : ""));
  }

  const Options& options_;
  std::size_t width_;
  std::string folder_;
  Interruption interruption_{options_};  // before any thread
  Journal journal_;
  std::string program_, program_print_;
  std::vector<BatchJob> jobs_;
  std::vector<std::string> rows_;  // each is written by one thread
  std::atomic<std::size_t> next_{0};
  std::atomic<int> done_{0}, unchanged_{0}, failed_{0}, without_plan_{0};
  std::atomic<bool> fault_seen_{false};
  std::exception_ptr fault_;
  std::mutex mutex_;
  Stopwatch watch_;
  bool told_ = !options_.quiet && overwrites_lines(STDERR_FILENO);
};

}  // namespace

CommandResult batch_command(const Session& session) {
  const Options& options = session.options;
  auto jobs =
      batch_jobs(options.operands, options.command_words.empty() ? "plan" : options.command_words,
                 session.path);
  std::vector<BatchJob> mine;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (options.shard.has(i)) mine.push_back(std::move(jobs[i]));
  make_folder(options.folder);
  Batch batch(session, std::move(mine));
  batch.run();
  return batch.result();
}

}  // namespace planner
