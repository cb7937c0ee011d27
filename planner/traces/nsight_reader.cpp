#include "planner/traces/nsight_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

#ifdef SHARDPLAN_WITH_SQLITE
#include <sqlite3.h>
#endif

namespace planner {

using costmodel::ConfigError;

bool reads_nsight() {
#ifdef SHARDPLAN_WITH_SQLITE
  return true;
#else
  return false;
#endif
}

#ifdef SHARDPLAN_WITH_SQLITE

namespace {

// Steps of SQLite's machine for one statement: a table that joins to more is no export.
constexpr int most_steps = 1'000'000'000, steps_between_calls = 1'000'000;

[[noreturn]] void no_export(const std::string& file, const std::string& wrong) {
  throw ConfigError({file, 0, 0}, wrong,
                    "name what nsys export --type sqlite wrote, with kernels of CUDA in it");
}

class Database {
 public:
  explicit Database(const std::string& file) : file_(file) {
    sqlite3* opened = nullptr;
    const int state = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    if (state != SQLITE_OK) fail();
    sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, 1 << 20);
    sqlite3_progress_handler(
        opened, steps_between_calls,
        [](void* calls) {
          return ++*static_cast<int*>(calls) > most_steps / steps_between_calls ? 1 : 0;
        },
        &calls_);
  }

  bool has(const char* table) const {
    bool found = false;
    each(fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", table),
         [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  bool has(const char* table, const char* column) const {
    bool found = false;
    each(fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column),
         [&](sqlite3_stmt*) { found = true; });
    return found;
  }

  // Calls `take` with each row.
  template <class Take>
  void each(const std::string& query, Take take) const {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &made, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    int state = 0;
    while ((state = sqlite3_step(made)) == SQLITE_ROW) {
      if (++rows_ > most_traced_events) {
        throw ConfigError({file_, 0, 0}, "has more than 4 million kernels and ranges",
                          "record fewer iterations: two are enough");
      }
      take(made);
    }
    if (state != SQLITE_DONE) fail();
  }

 private:
  [[noreturn]] void fail() const {
    no_export(file_, std::string("cannot be read as an export of Nsight Systems: ") +
                         costmodel::message_text(sqlite3_errmsg(database_.get())));
  }

  std::string file_;
  mutable std::size_t rows_ = 0;
  int calls_ = 0;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> database_{nullptr, sqlite3_close};
};

std::string text_of(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? "" : std::string(text).substr(0, 4096);
}

class Export {
 public:
  explicit Export(const std::string& file) : database_(file) {
    trace_.file = file;
    trace_.profiler = "Nsight Systems";
  }

  Trace read() {
    if (!database_.has("StringIds") || !database_.has("CUPTI_ACTIVITY_KIND_KERNEL"))
      no_export(trace_.file, "has no table of CUDA's kernels");
    database_.each("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
      names_[sqlite3_column_int64(row, 0)] = trace_.texts.of(text_of(row, 1));
    });
    nothing_ = trace_.texts.of("");
    if (database_.has("TARGET_INFO_GPU")) {
      database_.each("SELECT name FROM TARGET_INFO_GPU LIMIT 1",
                     [&](sqlite3_stmt* row) { trace_.device = text_of(row, 0).substr(0, 200); });
    }
    if (database_.has("NVTX_EVENTS")) read_ranges();
    if (database_.has("CUPTI_ACTIVITY_KIND_RUNTIME")) read_calls();
    read_kernels("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", "0", {});
    for (const auto& [table, name] : {std::pair{"CUPTI_ACTIVITY_KIND_MEMCPY", "Memcpy"},
                                      std::pair{"CUPTI_ACTIVITY_KIND_MEMSET", "Memset"}})
      if (database_.has(table)) read_kernels(table, "0", "bytes", name);
    if (trace_.kernels.empty()) no_export(trace_.file, "has no kernel of a device");
    if (database_.has("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId")) {
      trace_.devices = 0;
      database_.each("SELECT DISTINCT deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL",
                     [&](sqlite3_stmt*) { ++trace_.devices; });
    }
    return std::move(trace_);
  }

 private:
  std::uint32_t thread_of(sqlite3_stmt* row, int column) {
    return trace_.texts.of(fmt::format("thread {}", sqlite3_column_int64(row, column)));
  }

  // PyTorch's ranges: "aten::mm, seq = 12, sizes = [[8192, 2048], [2048, 512]]".
  void read_ranges() {
    database_.each(
        "SELECT start, \"end\", text, textId, globalTid FROM NVTX_EVENTS WHERE \"end\" IS NOT NULL",
        [&](sqlite3_stmt* row) {
          std::string name = text_of(row, 2);
          const auto known = names_.find(sqlite3_column_int64(row, 3));
          if (name.empty() && known != names_.end()) name = trace_.text(known->second);
          constexpr std::string_view before_sizes = ", sizes = ";
          std::string sizes;
          if (const auto at = name.find(before_sizes); at != std::string::npos) {
            sizes = name.substr(at + before_sizes.size(), 400);
            std::erase(sizes, ' ');
            trace_.has_sizes = true;
          }
          add(row, name.substr(0, name.find(", ")), sizes, thread_of(row, 4));
        });
  }

  // A call is within the range that is open in its thread.
  void read_calls() {
    database_.each(
        "SELECT start, \"end\", correlationId, nameId, globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        [&](sqlite3_stmt* row) {
          calls_[sqlite3_column_int64(row, 2)] =
              static_cast<std::uint32_t>(trace_.operators.size());
          const auto known = names_.find(sqlite3_column_int64(row, 3));
          const std::string name = known == names_.end() ? "cuda call" : trace_.text(known->second);
          add(row, name, "", thread_of(row, 4));
        });
  }

  void add(sqlite3_stmt* row, const std::string& name, const std::string& sizes,
           std::uint32_t thread) {
    const Nanoseconds start = sqlite3_column_int64(row, 0), end = sqlite3_column_int64(row, 1);
    trace_.operators.push_back({trace_.texts.of(name), trace_.texts.of(sizes), thread, no_operator,
                                start, std::max<Nanoseconds>(end - start, 0)});
  }

  void read_kernels(const char* table, const char* name, const char* bytes,
                    const std::string& fixed_name) {
    database_.each(
        fmt::format("SELECT start, \"end\", streamId, correlationId, {}, {} FROM {} ORDER BY start",
                    name, bytes, table),
        [&](sqlite3_stmt* row) {
          TracedKernel& kernel = trace_.kernels.emplace_back();
          kernel.begin = sqlite3_column_int64(row, 0);
          kernel.length = std::max<Nanoseconds>(sqlite3_column_int64(row, 1) - kernel.begin, 0);
          kernel.stream = sqlite3_column_int(row, 2);
          const auto known = names_.find(sqlite3_column_int64(row, 4));
          kernel.name = !fixed_name.empty()     ? trace_.texts.of(fixed_name)
                        : known != names_.end() ? known->second
                                                : nothing_;
          kernel.bytes = sqlite3_column_double(row, 5);
          const auto call = calls_.find(sqlite3_column_int64(row, 3));
          if (call == calls_.end()) return;
          kernel.launcher = call->second;
          kernel.launched = trace_.operators[call->second].begin;
        });
  }

  Database database_;
  Trace trace_;
  std::unordered_map<std::int64_t, std::uint32_t> names_, calls_;
  std::uint32_t nothing_ = 0;
};

}  // namespace

Trace read_nsight(const std::string& file) { return Export(file).read(); }

#else

Trace read_nsight(const std::string& file) {
  throw ConfigError({file, 0, 0}, "is an SQLite file, and this program was built without SQLite",
                    "install libsqlite3-dev and build again, or record with torch.profiler");
}

#endif

}  // namespace planner
