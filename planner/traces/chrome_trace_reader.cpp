#include "planner/traces/chrome_trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/json_stream.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace planner {

using costmodel::ConfigError;

namespace {

constexpr std::size_t longest_sizes = 400;  // characters of an operator's sizes that are kept

// One event, of which every field may be absent.
struct Event {
  std::string phase, category, name, process, thread, sizes, input, collective, type;
  double start = 0, length = 0;
  double external = -1, correlation = -1, stream = -1, device = 0, bytes = 0, sent = 0, group = 0;

  void clear() {
    for (std::string* text :
         {&phase, &category, &name, &process, &thread, &sizes, &input, &collective, &type})
      text->clear();
    start = length = device = bytes = sent = group = 0;
    external = correlation = stream = -1;
  }
};

struct TextField {
  std::string_view key;
  std::string Event::*into;
};
struct NumberField {
  std::string_view key;
  double Event::*into;
};
constexpr TextField event_texts[]{{"ph", &Event::phase},
                                  {"cat", &Event::category},
                                  {"name", &Event::name},
                                  {"pid", &Event::process},
                                  {"tid", &Event::thread}};
constexpr NumberField event_numbers[]{{"ts", &Event::start}, {"dur", &Event::length}};
constexpr TextField argument_texts[]{{"Collective name", &Event::collective},
                                     {"dtype", &Event::type}};
constexpr NumberField argument_numbers[]{
    {"External id", &Event::external}, {"correlation", &Event::correlation},
    {"stream", &Event::stream},        {"device", &Event::device},
    {"bytes", &Event::bytes},          {"In msg nelems", &Event::sent},
    {"Group size", &Event::group}};

Nanoseconds nanoseconds_of(double microseconds) {
  constexpr double most = 9e15;  // 104 days
  return static_cast<Nanoseconds>(std::llround(std::clamp(microseconds, -most, most) * 1e3));
}

class Reader : public costmodel::JsonTokens {
 public:
  explicit Reader(std::string file) { trace_.file = std::move(file); }

  void begin(bool object) override {
    ++depth_;
    if (depth_ == 1 && !object) events_ = 1;
    if (depth_ == 2 && !object && events_ == 0 && key_ == "traceEvents") events_ = 2;
    if (events_ > 0 && depth_ == events_ + 1) event_.clear();
    if (events_ > 0 && depth_ == events_ + 2) in_arguments_ = object && key_ == "args";
    if (depth_ == 2 && events_ == 0) section_ = key_;
    if (in_sizes()) event_.sizes += '[';
  }

  void end() override {
    if (in_sizes()) event_.sizes += ']';
    if (events_ > 0 && depth_ == events_ + 2) in_arguments_ = false;
    if (events_ > 0 && depth_ == events_ + 1) take();
    if (depth_ == events_) {
      seen_ = true;
      events_ = 0;
    }
    --depth_;
  }

  void key(const std::string& name) override {
    key_ = name;
    if (in_arguments_ && depth_ == events_ + 2) argument_ = name;
  }

  void text(const std::string& value) override {
    if (events_ > 0 && depth_ == events_ + 1) put(event_texts, value);
    if (in_arguments_ && depth_ == events_ + 2) put(argument_texts, value);
    if (in_arguments_ && depth_ > events_ + 2 && argument_ == "Input type" && event_.input.empty())
      event_.input = value.substr(0, 40);
    if (events_ == 0 && section_ == "deviceProperties" && depth_ == 3 && key_ == "name" &&
        trace_.device.empty())
      trace_.device = value.substr(0, 200);
  }

  void number(double value) override {
    if (events_ > 0 && depth_ == events_ + 1) {
      put(event_numbers, value);
      if (key_ == "pid" || key_ == "tid") put(event_texts, fmt::format("{:.0f}", value));
    }
    if (in_arguments_ && depth_ == events_ + 2) put(argument_numbers, value);
    if (in_sizes() && event_.sizes.size() < longest_sizes) {
      const char* comma = event_.sizes.back() == '[' ? "" : ",";
      event_.sizes += fmt::format("{}{:.0f}", comma, value);
    }
    if (events_ > 0) return;
    if (depth_ == 1 && key_ == "iteration_s" && value > 0)
      trace_.iteration = costmodel::Seconds(value);
    if (depth_ == 1 && key_ == "schemaVersion") trace_.profiler = "torch.profiler";
    if (section_ != "distributedInfo" || depth_ != 2) return;
    constexpr double most_ranks = 1e7;
    if (key_ == "rank") trace_.rank = static_cast<int>(std::clamp(value, 0.0, most_ranks));
    if (key_ == "world_size") trace_.ranks = static_cast<int>(std::clamp(value, 1.0, most_ranks));
  }

  void other() override {}

  Trace finished() {
    if (!seen_) {
      throw ConfigError({trace_.file, 0, 0}, "has no traceEvents: it is no Chrome trace",
                        "name what torch.profiler's export_chrome_trace or shardplan run --trace "
                        "wrote");
    }
    if (trace_.kernels.empty() && trace_.actions.empty()) {
      throw ConfigError(
          {trace_.file, 0, 0}, "has no kernel of a device",
          "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], and iterations "
          "within the profiler");
    }
    join();
    return std::move(trace_);
  }

 private:
  bool in_sizes() const {
    return in_arguments_ && depth_ > events_ + 2 && argument_ == "Input Dims" &&
           event_.sizes.size() < longest_sizes;
  }

  template <class Field, std::size_t N, class Of>
  void put(const Field (&fields)[N], const Of& value) {
    for (const Field& field : fields)
      if (field.key == key_) event_.*field.into = value;
  }

  // What is kept of an event: arrows, counters and names are not.
  void take() {
    if (event_.phase != "X" || !(event_.length >= 0)) return;
    const std::string& of = event_.category;
    if (of == "kernel" || of == "gpu_memcpy" || of == "gpu_memset") return take_kernel();
    if (of == "cpu_op" || of == "user_annotation") return take_operator();
    if (of == "cuda_runtime" || of == "cuda_driver") return take_call();
    for (int stream = 0; stream < costmodel::stream_count; ++stream)
      if (of == name_of(static_cast<costmodel::Stream>(stream))) return take_action();
  }

  void count() {
    if (++counted_ > most_traced_events) {
      throw ConfigError({trace_.file, 0, 0}, "has more than 4 million kernels and operators",
                        "record fewer iterations: two are enough");
    }
  }

  std::uint32_t number_of(const std::string& text) { return trace_.texts.of(text); }

  void take_kernel() {
    count();
    TracedKernel& kernel = trace_.kernels.emplace_back();
    kernel.name = number_of(event_.name);
    kernel.stream = static_cast<std::int32_t>(std::clamp(event_.stream, -1.0, 1e6));
    kernel.begin = nanoseconds_of(event_.start);
    kernel.length = nanoseconds_of(event_.length);
    kernel.bytes = event_.bytes;
    devices_.insert(event_.device);
    links_.push_back({event_.external, event_.correlation});
    if (event_.collective.empty()) return;
    trace_.collectives.push_back({static_cast<std::uint32_t>(trace_.kernels.size() - 1),
                                  number_of(event_.collective), event_.sent, number_of(event_.type),
                                  static_cast<int>(event_.group)});
  }

  void take_operator() {
    count();
    const auto number = static_cast<std::uint32_t>(trace_.operators.size());
    trace_.operators.push_back({number_of(event_.name), number_of(event_.sizes),
                                number_of(event_.process + "/" + event_.thread), no_operator,
                                nanoseconds_of(event_.start), nanoseconds_of(event_.length),
                                number_of(event_.input)});
    trace_.has_sizes = trace_.has_sizes || !event_.sizes.empty();
    if (event_.external >= 0 && event_.category == "cpu_op") by_external_[event_.external] = number;
  }

  void take_call() {
    count();
    trace_.calls.push_back(nanoseconds_of(event_.start));
    if (event_.correlation < 0) return;
    calls_[event_.correlation] = nanoseconds_of(event_.start);
  }

  void take_action() {
    count();
    const int rank = std::atoi(event_.process.c_str());
    trace_.actions.push_back({number_of(event_.name), number_of(event_.category), rank,
                              nanoseconds_of(event_.start), nanoseconds_of(event_.length)});
    trace_.ranks = std::max(trace_.ranks, std::clamp(rank, 0, 1'000'000) + 1);
  }

  // Kernels with the operators that launched them.
  void join() {
    for (std::size_t i = 0; i < trace_.kernels.size(); ++i) {
      TracedKernel& kernel = trace_.kernels[i];
      if (const auto call = calls_.find(links_[i].correlation); call != calls_.end())
        kernel.launched = call->second;
      const auto launcher = by_external_.find(links_[i].external);
      if (launcher != by_external_.end()) kernel.launcher = launcher->second;
      if (kernel.launched == 0 && kernel.launcher != no_operator)
        kernel.launched = trace_.operators[kernel.launcher].begin;
    }
    trace_.devices = std::max(1, static_cast<int>(devices_.size()));
    if (trace_.profiler.empty())
      trace_.profiler = trace_.kernels.empty() ? "shardplan" : "a Chrome trace";
  }

  struct Link {
    double external, correlation;
  };
  Trace trace_;
  Event event_;
  std::string key_, argument_, section_;
  int depth_ = 0, events_ = 0;  // events_: the depth of the list of events, while within it
  bool in_arguments_ = false, seen_ = false;
  std::size_t counted_ = 0;
  std::vector<Link> links_;
  std::set<double> devices_;
  std::unordered_map<double, std::uint32_t> by_external_;
  std::unordered_map<double, Nanoseconds> calls_;
};

}  // namespace

Trace read_chrome_trace(const std::function<std::string_view()>& next, const std::string& file) {
  Reader reader(file);
  costmodel::read_json_stream(next, file, reader);
  return reader.finished();
}

}  // namespace planner
