#include "runtime/devices/graph_cache.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "costmodel/base/error.hpp"

namespace runtime {

GraphCache::GraphCache(GraphRecorder& recorder, std::size_t graphs_of_shape)
    : recorder_(recorder), graphs_of_shape_(graphs_of_shape), generation_(recorder.generation()) {
  SHARDPLAN_CHECK(graphs_of_shape > 0);
}

GraphCache::~GraphCache() { forget_all(); }

void GraphCache::forget_all() noexcept {
  for (auto& [key, shape] : shapes_) {
    for (const auto& [values, made] : shape.made) recorder_.forget(made.graph);
    shape.made.clear();
  }
}

void GraphCache::one_by_one(const std::function<void()>& each) {
  ++counts_.done;
  each();
}

void GraphCache::start(Made& made) {
  recorder_.start(made.graph);
  made.last = stretches_;
}

void GraphCache::refuse(Shape& shape, const std::string& reason) {
  shape.refused = true;
  for (const auto& [values, made] : shape.made) recorder_.forget(made.graph);
  shape.made.clear();
  if (counts_.refused.empty()) counts_.refused = reason;
}

// Evicts the graph that was launched least recently.
void GraphCache::make_room(Shape& shape) {
  if (shape.made.size() < graphs_of_shape_) return;
  const auto oldest =
      std::ranges::min_element(shape.made, {}, [](const auto& entry) { return entry.second.last; });
  if (!oldest->second.again && ++shape.wasted >= graphs_of_shape_)
    return refuse(shape, "its tensors lie elsewhere every time");
  recorder_.forget(oldest->second.graph);
  shape.made.erase(oldest);
}

void GraphCache::capture(Shape& shape, const GraphKey& values, const std::function<void()>& each) {
  std::optional<GraphRecorder::Graph> graph;
  recorder_.begin();
  try {
    each();
    graph = recorder_.end();
  } catch (const std::exception& fault) {
    recorder_.cancel();
    refuse(shape, fault.what());
  }
  if (!graph) return one_by_one(each);
  ++counts_.captured;
  start(shape.made.emplace(values, Made{*graph}).first->second);
}

void GraphCache::run(const GraphKey& shape_key, const GraphKey& values, std::size_t operations,
                     const std::function<void()>& each) {
  if (operations == 0) return;
  if (operations == 1) return one_by_one(each);  // a graph would save nothing
  ++stretches_;
  if (generation_ != recorder_.generation()) {
    forget_all();
    generation_ = recorder_.generation();
  }
  const auto [found, fresh] = shapes_.try_emplace(shape_key);
  Shape& shape = found->second;
  if (!warm_ || fresh || shape.refused) return one_by_one(each);
  if (const auto made = shape.made.find(values); made != shape.made.end()) {
    ++counts_.replayed;
    made->second.again = true;
    return start(made->second);
  }
  make_room(shape);
  if (shape.refused) return one_by_one(each);
  capture(shape, values, each);
}

}  // namespace runtime
