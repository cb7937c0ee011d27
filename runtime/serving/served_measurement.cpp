#include "runtime/serving/served_measurement.hpp"

#include <cstddef>
#include <span>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

namespace {

// Writes a record as numbers, or reads one: the same calls in the same order.
struct RecordNumbers {
  std::vector<double> values;
  bool reading = false;
  std::size_t next = 0;

  template <class Number>
  void number(Number& value) {
    if (!reading) return values.push_back(static_cast<double>(value));
    SHARDPLAN_CHECK(next < values.size());
    value = static_cast<Number>(values[next++]);
  }
  void time(costmodel::Seconds& value) { number(value.value); }
  template <class Item, class Visit>
  void list(std::vector<Item>& items, Visit visit) {
    std::size_t size = items.size();
    number(size);
    items.resize(size);
    for (Item& item : items) visit(item);
  }

  void batch(ServedMeasurement& m) {
    time(m.first_token);
    time(m.end);
    list(m.tokens, [this](std::int64_t& token) { number(token); });
    TrafficCount& t = m.traffic;
    for (auto* bytes : {&t.all_reduce, &t.all_gather, &t.reduce_scatter, &t.all_to_all, &t.send})
      number(*bytes);
    for (auto* bytes : {&m.weights, &m.cache, &m.activations}) number(*bytes);
    number(m.pace);
  }
  void record(ServedRecord& r) {
    list(r.batches, [this](ServedMeasurement& m) { batch(m); });
    for (PassPace* pace : {&r.decode, &r.prefill})
      for (auto* seconds : {&pace->operators, &pace->collectives, &pace->transfers}) time(*seconds);
  }
};

constexpr int records = 4;  // control messages

}  // namespace

std::vector<ServedRecord> gather_records(Transport& transport, const ServedRecord& own) {
  if (transport.rank() != 0) {
    RecordNumbers numbers;
    ServedRecord copy = own;
    numbers.record(copy);
    const std::uint64_t size = numbers.values.size();
    transport.send(0, control_tag(records), std::as_bytes(std::span(&size, 1)));
    transport.send(0, control_tag(records), std::as_bytes(std::span(numbers.values)));
    return {};
  }
  std::vector<ServedRecord> all{own};
  for (int rank = 1; rank < transport.size(); ++rank) {
    std::uint64_t size = 0;
    transport.recv(rank, control_tag(records), std::as_writable_bytes(std::span(&size, 1)));
    RecordNumbers numbers{.values = std::vector<double>(size), .reading = true};
    transport.recv(rank, control_tag(records), std::as_writable_bytes(std::span(numbers.values)));
    numbers.record(all.emplace_back());
  }
  return all;
}

}  // namespace runtime
