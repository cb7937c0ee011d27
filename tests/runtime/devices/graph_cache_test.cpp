// Which stretches are captured, replayed, made anew or done by themselves.
#include "runtime/devices/graph_cache.hpp"

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>

namespace graph_cache_test {

using runtime::GraphCache;
using runtime::GraphKey;

namespace {

class FakeRecorder : public runtime::GraphRecorder {
 public:
  void begin() override { recording = true; }
  Graph end() override {
    recording = false;
    alive.insert(made);
    return made++;
  }
  void cancel() noexcept override { recording = false; }
  void start(Graph graph) override {
    REQUIRE(alive.contains(graph));
    started.push_back(graph);
  }
  void forget(Graph graph) noexcept override { alive.erase(graph); }
  std::int64_t generation() const override { return moved; }

  bool recording = false;
  Graph made = 0;
  std::int64_t moved = 0;
  std::set<Graph> alive;
  std::vector<Graph> started;
};

struct CacheBench {
  explicit CacheBench(std::size_t graphs_of_shape = 2) : cache(recorder, graphs_of_shape) {
    cache.warmed_up();
  }
  void run(const GraphKey& shape, const GraphKey& values, std::size_t operations = 3) {
    cache.run(shape, values, operations, [this] { ++(recorder.recording ? recorded : done); });
  }
  FakeRecorder recorder;
  GraphCache cache;
  int done = 0, recorded = 0;
};

}  // namespace

TEST_CASE("before it is warmed up, nothing is captured, and shapes are done for later") {
  FakeRecorder recorder;
  GraphCache cache(recorder, 2);
  for (int i = 0; i < 3; ++i) cache.run({1}, {10}, 2, [] {});
  CHECK(recorder.made == 0);
  CHECK(cache.counts().done == 3);
  cache.warmed_up();
  cache.run({1}, {10}, 2, [] {});
  CHECK(recorder.made == 1);
}

TEST_CASE("the first time a shape is done by itself, then captured once and replayed") {
  CacheBench bench;
  bench.run({1}, {1, 10});
  CHECK((bench.done == 1 && bench.recorded == 0));
  for (int i = 0; i < 3; ++i) bench.run({1}, {1, 10});
  CHECK((bench.done == 1 && bench.recorded == 1));
  CHECK(bench.recorder.started == std::vector<int>{0, 0, 0});
  CHECK(bench.cache.counts().captured == 1);
  CHECK(bench.cache.counts().replayed == 2);
  CHECK(bench.cache.counts().done == 1);
}

TEST_CASE("other addresses want another graph, and find their own again") {
  CacheBench bench;
  bench.run({1}, {1, 10});
  for (int i = 0; i < 2; ++i) {
    bench.run({1}, {1, 10});
    bench.run({1}, {1, 20});
  }
  CHECK(bench.recorder.started == std::vector<int>{0, 1, 0, 1});
  bench.run({2}, {2, 10});  // a shape that was never done
  CHECK(bench.done == 2);
}

TEST_CASE("one operation is no graph, and none nothing at all") {
  CacheBench bench;
  for (int i = 0; i < 3; ++i) bench.run({1}, {1, 10}, 1);
  bench.run({}, {}, 0);
  CHECK((bench.done == 3 && bench.recorded == 0));
}

TEST_CASE("where there are as many graphs as allowed, the one unused for longest goes") {
  CacheBench bench;
  bench.run({1}, {10});
  for (const std::uint64_t at : {10, 20, 10, 20, 10, 30}) bench.run({1}, {at});
  CHECK(bench.recorder.alive == std::set<int>{0, 2});
  bench.run({1}, {10});
  CHECK(bench.recorder.started.back() == 0);
  CHECK(bench.cache.counts().refused.empty());
}

TEST_CASE("addresses that never come again are not captured for ever") {
  CacheBench bench;
  for (std::uint64_t at = 0; at < 20; ++at) bench.run({1}, {at});
  CHECK(bench.cache.counts().refused == "its tensors lie elsewhere every time");
  CHECK(bench.cache.counts().captured == 3);  // two kept, two given up before the next
  CHECK(bench.recorder.alive.empty());
  CHECK(bench.done == 1 + 16);
}

TEST_CASE("what cannot be captured is done by itself from then on, and says why") {
  CacheBench bench;
  int done = 0;
  const auto each = [&] {
    if (bench.recorder.recording) throw std::runtime_error("it waits for the host");
    ++done;
  };
  for (int i = 0; i < 4; ++i) bench.cache.run({1}, {10}, 2, each);
  CHECK(done == 4);
  CHECK_FALSE(bench.recorder.recording);
  CHECK(bench.cache.counts().refused == "it waits for the host");
  CHECK(bench.cache.counts().captured == 0);
}

TEST_CASE("graphs made before the device's own memory moved are never started again") {
  CacheBench bench;
  for (int i = 0; i < 3; ++i) bench.run({1}, {10});
  bench.recorder.moved = 1;
  bench.run({1}, {10});
  CHECK(bench.recorder.alive == std::set<int>{1});
  CHECK(bench.recorder.started.back() == 1);
  CHECK(bench.cache.counts().captured == 2);
}

TEST_CASE("nothing is left of a cache that is gone") {
  FakeRecorder recorder;
  {
    GraphCache cache(recorder, 4);
    cache.warmed_up();
    for (int i = 0; i < 3; ++i) cache.run({1}, {10}, 2, [] {});
    CHECK(recorder.alive.size() == 1);
  }
  CHECK(recorder.alive.empty());
}

}  // namespace graph_cache_test
