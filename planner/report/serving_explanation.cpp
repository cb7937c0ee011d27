#include "planner/report/serving_explanation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "planner/report/serving_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

using PutRow = std::function<void(std::string, std::string, std::string)>;

void memory_rows(const ServingScenario& s, const ServingEstimate& e, const PutRow& row) {
  const auto& m = e.memory;
  row("B_w", format_bytes(m.weights),
      fmt::format(
          "weights of the fullest stage on a device: layers / pp, sizes / tp, {} bytes each",
          bytes_of(s.serving.weights)));
  row("b_kv", format_bytes(m.token),
      s.model.latent_attention()
          ? "a token's cache: layers / pp · (kv_lora_rank + rotary key) · bytes"
          : "a token's cache: layers / pp · 2 · kv_heads / tp · head_dim · bytes");
  row("B_cache", format_bytes(m.cache), "utilization · memory - weights - activations - engine");
  row("n_kv", format_integer(std::llround(m.tokens)),
      "floor(B_cache / (block · b_kv)) · block tokens a replica");
  row("held", fmt::format("{:.1f}", e.held), "n_kv / (prompt + answer) requests");
}

// Of a token in a step, part by part.
void token_rows(const ServingScenario& s, const ServingEstimate& e, const PutRow& row) {
  const auto& c = s.serving.engine.constants;
  const auto& device = s.cluster.device;
  row("bw_w", format_bandwidth(BytesPerSecond(device.memory_bandwidth.value * c.memory_share)),
      fmt::format("device bandwidth · {:.2f}, for weights", c.memory_share));
  row("bw_kv", format_bandwidth(BytesPerSecond(device.memory_bandwidth.value * c.cache_share)),
      fmt::format("device bandwidth · {:.2f}, for keys and values", c.cache_share));
  // What is a millionth of a token's time comes of rounding.
  const auto part = [&](Seconds time) {
    return format_seconds(time < 1e-6 * e.token.total() ? Seconds(0) : time);
  };
  row("t_w", part(e.token.weights),
      s.model.experts > 0
          ? fmt::format(
                "bytes of the weights that the step uses / bw_w, those of experts at {:.2f} "
                "of it (expert_factor)",
                c.expert_factor)
          : "bytes of the weights that the step uses / bw_w");
  row("t_kv", part(e.token.cache),
      fmt::format("{:.1f} sequences · cached tokens{} · b_kv / bw_kv", e.running,
                  s.model.sliding_window > 0 || s.model.attention_chunk > 0
                      ? " (of a layer with a window or chunks, those within)"
                      : ""));
  row("t_p", part(e.token.products),
      "products and attention: max(FLOPs / rate, bytes / bw_w), less t_w and t_kv");
  row("t_k", part(e.token.streams),
      fmt::format("element-wise bytes / bw_w, and {} a kernel", format_seconds(c.kernel)));
  row("t_c", part(e.token.collectives),
      "all-reduces of a layer's two branches; exchange of experts");
  row("t_pp", part(e.token.transfers), "hidden states between stages; offloaded weights");
  row("t_h", part(e.token.host),
      fmt::format("{} a step and {} a sequence{}", format_seconds(c.host_step),
                  format_seconds(c.host_sequence),
                  s.serving.engine.host_overlap ? ", what exceeds the device's time" : ""));
  row("t_token", format_seconds(e.token.total()), "t_w + t_kv + t_p + t_k + t_c + t_pp + t_h");
}

void request_rows(const ServingScenario& s, const ServingEstimate& e, const PutRow& row) {
  row("tpot", format_seconds(Seconds(e.tpot.mean)),
      "mean of (answer - first token) / (tokens - 1), simulated request by request");
  row("ttft", latency_text(e.ttft.mean),
      fmt::format("mean from arrival to the first token, {} outside the steps included",
                  format_seconds(s.serving.engine.constants.request)));
  if (s.plan.disaggregation) {
    row("t_kv_sent", format_seconds(e.transfer),
        fmt::format("{} of keys and values of a prompt over the outermost network",
                    format_bytes(e.sent)));
  }
  row("X", fmt::format("{:.4g}", e.output_per_s),
      "output tokens a second of all replicas, simulated");
  row("n*", e.turning > 0 ? format_integer(std::llround(e.turning)) : "none",
      "the batch at which products take longer than reading");
}

}  // namespace

Table serving_explanation(const ServingScenario& s, const ServingEstimate& e) {
  Table table{{left("symbol"), left("value"), left("where it comes from")}};
  const PutRow row = [&](std::string symbol, std::string value, std::string from) {
    table.rows.push_back({std::move(symbol), std::move(value), std::move(from)});
  };
  memory_rows(s, e, row);
  if (!e.fits) return table;
  token_rows(s, e, row);
  request_rows(s, e, row);
  return table;
}

}  // namespace planner
