// A decorator that batches operations into stretches and replays them from graphs
// (graph_cache.hpp). Calls are queued until something needs their results (the host waits or reads,
// another stream is to follow, memory is freed); then the queued stretch runs as a whole.
//
// What differs in every iteration is excluded and runs by itself: dropout, which draws by the
// sample's number, and the gradient of the loss, which fp16 scales. Collectives of tensor ranks run
// on other streams, so that a stretch ends before one and the next stretch begins after it.
//
// Not thread-safe, including its memory and its streams.
#pragma once

#include <cstddef>
#include <list>
#include <optional>

#include "runtime/devices/device_wrapper.hpp"
#include "runtime/devices/graph_cache.hpp"

namespace runtime {

class GraphedDevice : public DeviceAround {
 public:
  // Both outlive this; the recorder belongs to the device. `graphs_of_shape`: see GraphCache.
  GraphedDevice(Device& device, GraphRecorder& recorder, std::size_t graphs_of_shape);
  ~GraphedDevice() override;
  GraphedDevice(const GraphedDevice&) = delete;
  GraphedDevice& operator=(const GraphedDevice&) = delete;

  Memory& memory() override { return memory_; }
  Streams* streams() override { return streams_ ? &*streams_ : nullptr; }
  bool fuses_activations() const override { return inner().fuses_activations(); }
  void forward_fused(const OpCall& linear, const OpCall& activation) override;
  void input_gradient_fused(const OpCall& linear, const OpCall& activation) override;
  // To be called after the first iteration; stretches are captured from then on.
  void warmed_up() { cache_.warmed_up(); }
  const GraphCounts& counts() const { return cache_.counts(); }

 private:
  struct Call;   // a call of the device
  struct Fused;  // a fused pair of calls of the device
  struct Move;   // a copy or clear in its memory
  struct Step;

  // Runs the queued stretch before every operation it forwards, except copies and clears, which
  // join the queue.
  class KeptMemory : public Memory {
   public:
    KeptMemory(GraphedDevice& device, Memory& memory) : device_(device), memory_(memory) {}
    bool host() const override { return memory_.host(); }
    void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
    void release(void* data) noexcept override;
    void clear(void* data, std::size_t bytes) override;
    using Memory::copy;
    void copy(const void* from, void* to, std::size_t bytes) override;
    void read(const void* from, std::span<std::byte> host) override;
    void write(void* to, std::size_t bytes,
               const std::function<void(std::span<std::byte>)>& write) override;
    void reduce(Reduction reduction, const Vector& other, const Vector& values) override;
    void round(std::span<const float> from, const Vector& to) override;
    void add_sum(std::span<const float> values, double* total) override;
    void draw_tokens(const cpu::TokenDraw& draw, std::span<std::int64_t> ids) override;
    void adamw(std::span<float> params, std::span<const float> grads, std::span<float> mean,
               std::span<float> square, const cpu::AdamW& how, std::int64_t step,
               double gradient_scale) override;
    void adamw(std::span<const AdamTensor> tensors, const cpu::AdamW& how, std::int64_t step,
               double gradient_scale) override;
    bool finite(std::span<const AdamTensor> tensors) override;
    void wait() override;

   private:
    GraphedDevice& device_;
    Memory& memory_;
  };

  // The same for operations that involve the compute stream.
  class KeptStreams : public Streams {
   public:
    KeptStreams(GraphedDevice& device, Streams& streams) : device_(device), streams_(streams) {}
    Stream make_stream() override { return streams_.make_stream(); }
    Event make_event() override { return streams_.make_event(); }
    void record(Stream stream, Event event) override;
    void wait(Stream stream, Event event) override;
    void copy(Stream stream, const void* from, void* to, std::size_t bytes) override;
    bool passed(Event event) override { return streams_.passed(event); }
    costmodel::Seconds time(Event since, Event event) override {
      return streams_.time(since, event);
    }
    void watch(std::function<void()> look) override { streams_.watch(std::move(look)); }

   private:
    GraphedDevice& device_;
    Streams& streams_;
  };

  void around(Work work, const OpCall& call) override;
  void keep(const Move& move);
  void settle();  // runs the queued stretch
  void do_step(const Call& kept);
  void do_step(const Fused& fused);
  void do_step(const Move& move);
  void do_steps();
  template <class VisitCall, class VisitMove>
  static void look_at(const Step& step, VisitCall visit, VisitMove visit_move);
  static void put_values(GraphKey& key, const Call& kept);
  GraphKey shape() const;
  GraphKey values() const;

  Memory& own_memory_;
  KeptMemory memory_;
  std::optional<KeptStreams> streams_;
  GraphCache cache_;
  std::list<Step> kept_;
};

}  // namespace runtime
