#include "costmodel/serving/request_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

struct Running {
  std::size_t request = 0;
  double cached = 0;  // tokens with keys and values
  double left = 0;    // prompt tokens to prefill, of those after a preemption too
  double made = 0;    // tokens of the answer
  double late = 0;    // its tokens leave the last stage so much after their rounds
};

// Tokens of steps, and the time of these. Of a step with both, prompts and answers have a part as
// large as their tokens.
struct Tokens {
  double tokens = 0, seconds = 0;
  double each() const { return tokens > 0 ? seconds / tokens : 0; }
  Tokens operator-(const Tokens& o) const { return {tokens - o.tokens, seconds - o.seconds}; }
  void add(double more, Seconds each) {
    tokens += more;
    seconds += more * each.value;
  }
};
// What has been done by a moment of the run: request-seconds of those that ran, and the tokens that
// decodes read.
struct Tally {
  Tokens prompt, answer;
  double seconds = 0, occupied = 0, read = 0;
  Tally operator-(const Tally& o) const {
    return {prompt - o.prompt, answer - o.answer, seconds - o.seconds, occupied - o.occupied,
            read - o.read};
  }
  double running() const { return seconds > 0 ? occupied / seconds : 0; }
  double context() const { return answer.tokens > 0 ? read / answer.tokens : 0; }
};

class Replica {
 public:
  Replica(const std::vector<ServedRequest>& requests, const ReplicaLimits& limits,
          const StepClock& clock)
      : requests_(requests),
        limits_(limits),
        clock_(clock),
        first_(requests.size(), -1),
        end_(requests.size(), -1),
        start_(requests.size(), 0),
        made_(requests.size(), 0) {
    for (const ServedRequest& r : requests)
      longest_ = std::max(longest_, blocks_of(r.input + r.output));
  }

  ServedRun run() {
    const auto clients = static_cast<std::size_t>(limits_.concurrency);
    while (next_ < requests_.size() && (clients == 0 || next_ < clients))
      ask(clients > 0 ? 0 : requests_[next_].arrival);
    while (done_ < requests_.size()) {
      arrive();
      admit();
      if (running_.empty()) {
        SHARDPLAN_CHECK(!coming_.empty());
        now_ = coming_.front().second;
        continue;
      }
      step();
    }
    return measured();
  }

 private:
  double blocks_of(double tokens) const {
    return std::ceil(tokens / static_cast<double>(limits_.serving.block_size));
  }

  // The next request starts; those before it come before it.
  void ask(double time) {
    const double turn = coming_at_ + limits_.turn;
    start_[next_] = time;
    const double ready = requests_[next_].ready;
    coming_at_ = ready >= 0   ? ready
                 : next_ == 0 ? time + limits_.delay
                              : std::max(time + limits_.delay, turn);
    coming_.emplace_back(next_++, coming_at_);
  }

  void arrive() {
    for (; !coming_.empty() && coming_.front().second <= now_; coming_.pop_front())
      waiting_.push_back(coming_.front().first);
  }

  // What a request takes of the cache when it is admitted.
  double needed(std::size_t request) const {
    const ServedRequest& r = requests_[request];
    return blocks_of(r.input + (limits_.reserves_output ? r.output : made_[request] + 1));
  }

  // 0 where so many have room whatever comes.
  double used(std::size_t requests) const {
    double blocks = 0;
    if (static_cast<double>(requests) * longest_ <= limits_.blocks) return 0;
    for (const Running& r : running_) {
      const ServedRequest& q = requests_[r.request];
      blocks += limits_.reserves_output ? blocks_of(q.input + q.output) : growing(r);
    }
    return blocks;
  }

  // Of a request that runs, with room for its next token: as when it was admitted.
  double growing(const Running& r) const { return blocks_of(r.cached + r.left + 1); }

  void admit() {
    if (waiting_.empty()) return;
    double taken = used(running_.size() + waiting_.size());
    while (!waiting_.empty() &&
           running_.size() < static_cast<std::size_t>(limits_.serving.max_num_seqs)) {
      const std::size_t request = waiting_.front();
      const double more = needed(request);
      if (!running_.empty() && taken + more > limits_.blocks) return;
      taken += more;
      waiting_.pop_front();
      const ServedRequest& r = requests_[request];
      work_.seconds = now_;
      if (request == requests_.size() / 4 && made_[request] == 0) settled_ = work_;
      if (request + 1 == requests_.size() && made_[request] == 0) last_ = work_;
      const double cached = made_[request] > 0 ? 0 : std::floor(r.input * limits_.prefix_hit_share);
      running_.push_back({request, cached, r.input + made_[request] - cached, made_[request]});
    }
  }

  // The latest ones are put back until the rest have room for one token more each.
  void preempt() {
    if (limits_.reserves_output) return;
    double taken = used(running_.size());
    while (running_.size() > 1 && taken > limits_.blocks) {
      const Running last = running_.back();
      running_.pop_back();
      taken -= growing(last);
      made_[last.request] = last.made;
      waiting_.push_front(last.request);
      ++preempted_;
    }
  }

  void step() {
    preempt();
    StepLoad load;
    const bool prompts = std::ranges::any_of(running_, [](const Running& r) { return r.left > 0; });
    const bool decodes = limits_.serving.chunked_prefill || !prompts;
    for (const Running& r : running_) {
      if (!decodes || r.left > 0) continue;
      ++load.decodes;
      load.decode_context += r.cached;
    }
    const auto budget = static_cast<double>(limits_.serving.max_num_batched_tokens);
    double room = std::max(decodes ? 1.0 : budget, budget - load.decodes);
    std::vector<double> taken(running_.size(), 0);
    for (std::size_t i = 0; i < running_.size() && room > 0; ++i) {
      const Running& r = running_[i];
      if (r.left <= 0) continue;
      // Whole prompts, unless one alone exceeds the budget.
      if (!limits_.serving.chunked_prefill && r.left > room && load.prefill_tokens > 0) break;
      const double tokens = limits_.serving.chunked_prefill ? std::min(r.left, room) : r.left;
      taken[i] = tokens;
      room -= tokens;
      load.prefill_tokens += tokens;
      load.prefill_pairs += prefill_pairs(tokens, r.cached);
      ++load.prefilling;
      if (tokens == r.left) ++load.prompts;
    }
    const StepParts parts = clock_(load);
    ++steps_;
    now_ += parts.total().value;
    work_.occupied += parts.total().value * static_cast<double>(running_.size());
    work_.read += load.decode_context;
    work_.prompt.add(load.prefill_tokens, parts.total() / load.tokens());
    work_.answer.add(load.decodes, parts.total() / load.tokens());
    advance(taken, decodes, parts.passing.value);
  }

  // `passing`: what a prompt takes through the stages beyond the step. It delays the tokens of a
  // request and no round: a request that begins between two rounds waits for neither.
  void advance(const std::vector<double>& taken, bool decodes, double passing) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      Running r = running_[i];
      bool token = decodes;
      if (r.left > 0) {
        r.left -= taken[i];
        r.cached += taken[i];
        token = r.left <= 0;
        r.late = passing;
      } else if (decodes) {
        ++r.cached;
      }
      if (token) ++r.made;
      if (token && first_[r.request] < 0) first_[r.request] = now_ + r.late;
      if (token && r.made >= requests_[r.request].output) {
        end_[r.request] = now_ + r.late;
        late_ += r.late;
        ++done_;
        if (limits_.concurrency > 0 && next_ < requests_.size()) ask(now_);
      } else {
        running_[kept++] = r;
      }
    }
    running_.resize(kept);
  }

  ServedRun measured() const;
  Tally usual_work() const;
  double pace() const;

  const std::vector<ServedRequest>& requests_;
  const ReplicaLimits& limits_;
  const StepClock& clock_;
  std::vector<double> first_, end_, start_, made_;
  std::deque<std::pair<std::size_t, double>> coming_;  // and when each is in the queue
  std::deque<std::size_t> waiting_;
  std::vector<Running> running_;
  std::size_t next_ = 0, done_ = 0;
  double now_ = 0, coming_at_ = 0, late_ = 0, longest_ = 0;
  Tally work_, settled_, last_;  // settled: once a quarter has begun; last: when all have
  std::int64_t steps_ = 0, preempted_ = 0;
};

// At what a token took while requests waited, all tokens of the run: of a window of requests those
// that begin in waves, or that prompts keep from their end, would be too many or too few.
double Replica::pace() const {
  const auto took = [&](Tokens Tally::*of) {
    const Tokens middle = last_.*of - settled_.*of, &all = work_.*of;
    return all.tokens * (middle.tokens > 0 ? middle : all).each();
  };
  const double busy = (work_.prompt.seconds + work_.answer.seconds) / std::max(1e-12, now_);
  return busy * static_cast<double>(requests_.size()) /
         std::max(1e-12, took(&Tally::prompt) + took(&Tally::answer));
}

// Without start and end of the run, where requests that wait fill what ends.
Tally Replica::usual_work() const {
  Tally all = work_;
  all.seconds = now_;
  const Tally middle = last_ - settled_;
  return limits_.full_run || middle.seconds <= 0 || middle.answer.tokens <= 0 ? all : middle;
}

ServedRun Replica::measured() const {
  ServedRun run;
  const std::size_t count = requests_.size();
  // Without start and end of the run: the requests that end in its middle half.
  std::vector<double> ends = end_;
  std::ranges::sort(ends);
  const bool all = limits_.full_run;
  std::size_t skipped = all || count < 8 ? 0 : count / 4;
  // Where these end at once, as after prompts that stop all decoding, there is no middle.
  if (skipped > 0 && ends[skipped - 1] >= ends[count - 1 - skipped]) skipped = 0;
  const double from = skipped == 0 ? 0 : ends[skipped - 1];
  const double to = ends[count - 1 - skipped];
  // Those that start the run together wait for one another as none does later.
  const auto most = static_cast<std::size_t>(limits_.concurrency);
  const std::size_t at_once = count >= 2 * most ? most : 0;
  // Of drawn lengths the long ones end late: those that start in the middle half.
  const auto differs = [&](const ServedRequest& r) {
    return r.input != requests_.front().input || r.output != requests_.front().output;
  };
  const bool by_start = most > 0 && skipped > 0 && std::ranges::any_of(requests_, differs);
  auto& [ttft, tpot, e2e] = run.times;
  double outputs = 0, inputs = 0, counted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool middle = by_start ? i >= skipped && i < count - skipped
                                 : (skipped == 0 || end_[i] > from) && end_[i] <= to;
    if (!middle) continue;
    ++counted;
    outputs += requests_[i].output;
    inputs += requests_[i].input;
    if (skipped > 0 && i < at_once && !by_start) continue;
    ttft.push_back(first_[i] - start_[i]);
    e2e.push_back(end_[i] - start_[i]);
    if (requests_[i].output > 1) tpot.push_back((end_[i] - first_[i]) / (requests_[i].output - 1));
  }
  const double begun = skipped == 0 ? (start_.empty() ? 0 : start_.front()) : from;
  run.seconds = std::max(to - begun, std::numeric_limits<double>::min());
  // A client asks again once its answer has left the last stage.
  if (all && most > 0)
    run.seconds = std::max(run.seconds, now_ + late_ / static_cast<double>(std::min(most, count)));
  run.ttft = latency_of(ttft);
  run.tpot = latency_of(tpot);
  run.e2e = latency_of(e2e);
  // In flight over the time of a request, by Little's law: of requests that end in waves a window
  // would cut the waves.
  run.requests_per_s =
      !all && most > 0 ? static_cast<double>(most) / run.e2e.mean : counted / run.seconds;
  run.pace = pace();
  run.output_per_s = run.requests_per_s * outputs / counted;
  run.total_per_s = run.requests_per_s * (outputs + inputs) / counted;
  run.requests = static_cast<std::int64_t>(count);
  const Tally usual = usual_work();
  run.running = usual.running();
  run.context = usual.context();
  run.steps = steps_;
  run.preempted = preempted_;
  return run;
}

}  // namespace

std::vector<ServedRequest> drawn_requests(const LengthSpec& input, const LengthSpec& output,
                                          double rate, std::int64_t count) {
  Draws draws;
  std::vector<ServedRequest> requests(static_cast<std::size_t>(count));
  double now = 0;
  for (ServedRequest& r : requests) {
    if (rate > 0) now -= std::log(draws.uniform()) / rate;
    r = {now, drawn(input, draws), drawn(output, draws)};
  }
  return requests;
}

Latency latency_of(std::vector<double> values) {
  if (values.empty()) return {};
  double sum = 0;
  for (const double v : values) sum += v;
  const auto at = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(values.size())));
  double& p95 = values[std::max<std::size_t>(at, 1) - 1];
  std::nth_element(values.data(), &p95, values.data() + values.size());
  return {sum / static_cast<double>(values.size()), p95};
}

ServedRun serve(const std::vector<ServedRequest>& requests, const ReplicaLimits& limits,
                const StepClock& clock) {
  return Replica(requests, limits, clock).run();
}

}  // namespace costmodel
