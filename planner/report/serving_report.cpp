#include "planner/report/serving_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "planner/diagnosis/serving_remedies.hpp"
#include "planner/diagnosis/tensor_ladder.hpp"
#include "planner/report/serving_interval.hpp"
#include "planner/report/serving_notes.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string whole_number(double n) { return format_integer(std::llround(n)); }

std::string rate_text(double per_second) {
  return per_second >= 100 ? whole_number(per_second) : fmt::format("{:.3g}", per_second);
}

std::string length_text(const LengthSpec& length) {
  if (length.most > 0)
    return fmt::format("{} to {}", whole_number(length.least), whole_number(length.most));
  if (length.p95 > 0)
    return fmt::format("{} (95 % up to {})", whole_number(length.mean), whole_number(length.p95));
  return whole_number(length.mean);
}

std::string load_text(const ServingSpec& s) {
  if (s.concurrency > 0) return fmt::format("{} requests in flight", format_integer(s.concurrency));
  if (s.arrival_rate > 0) return rate_text(s.arrival_rate) + " requests arrive a second";
  return fmt::format("{} requests at once", format_integer(s.requests));
}

// Of a time: measured / predicted lies between the interval's ends.
std::string mean_text(const Latency& latency, const std::array<double, 2>& interval) {
  if (!std::isfinite(latency.mean)) return "grows with every request";
  const auto at = [&](double factor) { return format_seconds(Seconds(latency.mean * factor)); };
  const std::string tail =
      latency.p95 > latency.mean * 1.005
          ? fmt::format(", 95 % under {}", format_seconds(Seconds(latency.p95)))
          : "";
  return fmt::format("{} mean{}   (90 % interval {} to {})", at(1), tail, at(interval[0]),
                     at(interval[1]));
}

// `rates`: the output tokens/s between which it lies.
std::string price_text(const ServingEstimate& e, const std::array<double, 2>& rates) {
  if (e.usd_per_hour <= 0)
    return "not known: --set cluster.price.usd_per_device_hour=2.50, or what you pay";
  const double usd = e.usd_per_million_output, all = usd * e.output_per_s;
  return fmt::format(
      "{:.3g} dollars a million output tokens (90 % interval {:.3g} to {:.3g}), {:.4g} dollars an "
      "hour",
      usd, all / rates[1], all / rates[0], e.usd_per_hour);
}

std::string memory_text(const ServingEstimate& e) {
  const auto& m = e.memory;
  return fmt::format(
      "{} weights, {} activations, {} engine; {} left of {} ({} usable) for keys and "
      "values",
      format_bytes(m.weights), format_bytes(m.activations), format_bytes(m.context),
      m.cache.value > 0 ? format_bytes(m.cache) : "nothing", format_bytes(m.device),
      format_bytes(m.usable));
}

// "12.3 GB of keys and values a prompt, in 40 ms".
std::string transfer_text(const ServingEstimate& e) {
  return fmt::format("{} of keys and values a prompt, in {}; {} on the wire at this rate",
                     format_bytes(e.sent), format_seconds(e.transfer),
                     format_bandwidth(BytesPerSecond(e.sent.value * e.requests_per_s)));
}

// What is asked, and whether it is kept.
std::string asked_text(const ServingScenario& s, const ServingEstimate& e) {
  std::vector<std::string> parts;
  for (const AskedBound& bound : asked_bounds(s, e)) parts.push_back(to_string(bound));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string overload_text(const ServingScenario& s, const ServingEstimate& e) {
  std::string text = fmt::format(
      "{} requests a second arrive and at most {} are answered: the queue grows without end, by {} "
      "a second; throughput and next tokens are those of full batches",
      rate_text(s.serving.arrival_rate), rate_text(e.capacity),
      rate_text(s.serving.arrival_rate - e.capacity));
  if (e.run) {
    text += fmt::format(
        "; {} requests alone, which begin and end with emptier ones: {} tokens/s, first token {}, "
        "next tokens {}, answer {}",
        format_integer(s.serving.requests), rate_text(e.run->output_per_s),
        latency_text(e.run->ttft.mean), latency_text(e.run->tpot.mean),
        latency_text(e.run->e2e.mean));
  }
  return text;
}

std::string verdict_lines(const ServingScenario& s, const ServingEstimate& e,
                          const ServingFit& fit) {
  const auto& limits = s.serving.limits;
  std::string text = e.fits ? "" : fmt::format("Does not fit: {}\n", memory_text(e));
  if (const std::string help = length_remedy(e.memory); !e.fits && !help.empty())
    text += "Length      " + help + "\n";
  text += fmt::format("Plan        {}   (a replica: {} requests, {} tokens a step{})\n",
                      plan_text(s, e.sizes), format_integer(limits.max_num_seqs),
                      format_integer(limits.max_num_batched_tokens),
                      limits.chunked_prefill ? ", chunked prefill" : "");
  if (!e.fits) return text;
  const auto rates = output_interval(s, e, fit.intervals[0]);
  text += fmt::format(
      "Throughput  {} output tokens/s   {} a device   {} requests/s   (90 % interval {} to {} "
      "tokens/s)\n",
      rate_text(e.output_per_s), rate_text(e.per_device()), rate_text(e.requests_per_s),
      rate_text(rates[0]), rate_text(rates[1]));
  text += "First token " + mean_text(e.ttft, fit.intervals[2]) + "\n";
  if (s.serving.output.mean > 1)
    text += "Next tokens " + mean_text(e.tpot, fit.intervals[1]) + " each\n";
  text += "Answer      " + mean_text(e.e2e, fit.intervals[3]) + "\n";
  text += "Memory      " + memory_text(e) + "\n";
  if (s.plan.disaggregation) text += "Transfer    " + transfer_text(e) + "\n";
  text += fmt::format("Cache       {} tokens a replica: {} whole requests; {:.1f} run on average\n",
                      whole_number(e.memory.tokens), whole_number(std::floor(e.held)), e.running);
  text += "Price       " + price_text(e, rates) + "\n";
  if (const std::string asked = asked_text(s, e); !asked.empty())
    text += "Wanted      " + asked + "\n";
  if (e.saturated) text += "Overloaded  " + overload_text(s, e) + "\n";
  return text;
}

std::string verdict(const ServingScenario& s, const ServingEstimate& e, const ServingFit& fit,
                    const ReportStyle& style) {
  const std::string lines = verdict_lines(s, e, fit);
  if (style.markup == Markup::text) {
    constexpr std::size_t label = 12;  // columns, where values begin
    return "\n" + wrapped(lines, style.style.width, label);
  }
  std::string text = "\n";
  std::size_t at = 0;
  while (at < lines.size()) {
    const std::size_t end = lines.find('\n', at);
    text += "- " + escaped(lines.substr(at, end - at), style) + "\n";
    at = end + 1;
  }
  return text;
}

std::string memory_cell(const ServingEstimate& e) { return format_gib(e.memory.weights); }

}  // namespace

std::vector<NamedPart> token_parts(const ServingEstimate& e) {
  return {{"weights read", e.token.weights},
          {"keys and values read", e.token.cache},
          {"products beyond reading", e.token.products},
          {"element-wise kernels, kernel starts", e.token.streams},
          {"collectives", e.token.collectives},
          {"transfers between stages, from the host", e.token.transfers},
          {"host", e.token.host},
          {"waiting for prompts of others", e.stalled}};
}

std::string latency_text(double seconds) {
  return std::isfinite(seconds) ? format_seconds(Seconds(seconds)) : "endless";
}

std::string to_string(const ServingSizes& sizes) {
  return fmt::format("tp {} · pp {} · ep {} · dp {}", sizes.tp, sizes.pp, sizes.ep, sizes.dp);
}

std::string plan_text(const ServingScenario& s, const ServingSizes& sizes) {
  if (!s.plan.disaggregation) return to_string(sizes);
  return fmt::format("prompts on {}; decoding on {}", to_string(s.plan.disaggregation->prefill),
                     to_string(s.plan.disaggregation->decode));
}

std::string serving_heading(const ServingScenario& s, const ReportStyle& style) {
  const std::string model = s.model.title.empty() ? s.model_text : s.model.title;
  const std::string cluster = s.cluster.title.empty() ? s.cluster_text : s.cluster.title;
  const std::string what = escaped(
      fmt::format("Serving {} ({} parameters{}) on {} x {} of {}", model,
                  format_count(parameter_count(s.model)),
                  s.model.experts > 0
                      ? fmt::format(", {} active", format_count(active_parameter_count(s.model)))
                      : "",
                  format_integer(s.cluster.devices), s.cluster.device.title, cluster),
      style);
  const std::string how = escaped(
      fmt::format("prompts of {} tokens, answers of {}, {}; weights {}, cache {}; {}",
                  length_text(s.serving.input), length_text(s.serving.output), load_text(s.serving),
                  s.serving.weights_open ? "auto" : std::string(to_string(s.serving.weights)),
                  cache_format_names[static_cast<std::size_t>(s.serving.kv_cache)],
                  s.serving.engine.title),
      style);
  if (style.markup == Markup::markdown) return "## " + what + "\n\n" + how + "\n";
  return style.style.bold(what) + "\n" + how + "\n";
}

// What is less comes of rounding.
constexpr double least_share = 1e-6;

Table token_table(const ServingEstimate& e) {
  Table table{{left("part"), "time", "share"}};
  const double all = (e.token.total() + e.stalled).value;
  for (const auto& [name, time] : token_parts(e)) {
    if (time.value <= all * least_share) continue;
    table.rows.push_back(
        {name, format_seconds(time), fmt::format("{:.1f} %", 100 * time.value / all)});
  }
  return table;
}

Table load_table(const std::vector<LoadPoint>& curve) {
  Table table{{"in flight", "requests/s", "output tokens/s", "first token", "next tokens"}};
  for (const auto& point : curve) {
    table.rows.push_back({whole_number(point.in_flight), rate_text(point.requests_per_s),
                          rate_text(point.output_per_s), format_seconds(point.ttft),
                          format_seconds(point.tpot)});
  }
  return table;
}

namespace {

// A short time a token may be bought by a batch that most requests wait for.
std::string waiting_sentence(const ServingScenario& s, const ServingEstimate& e) {
  const auto places = static_cast<double>(s.serving.limits.max_num_seqs) * e.sizes.dp;
  const auto all = static_cast<double>(s.serving.concurrency);
  if (all <= places) return "";
  return fmt::format(
      "Of {} requests in flight {} wait for a place in a batch of {}: that shortens the time a "
      "token and is what the first token waits for.",
      whole_number(all), whole_number(all - places), format_integer(s.serving.limits.max_num_seqs));
}

}  // namespace

std::vector<std::string> serving_reasons(const ServingScenario& s, const ServingEstimate& e) {
  std::vector<std::string> all;
  auto parts = token_parts(e);
  const double whole = (e.token.total() + e.stalled).value;
  std::ranges::stable_sort(parts,
                           [](const NamedPart& a, const NamedPart& b) { return b.time < a.time; });
  all.push_back(fmt::format("Of a token's time {:.0f} % is {}, {:.0f} % {}.",
                            100 * parts[0].time.value / whole, parts[0].name,
                            100 * parts[1].time.value / whole, parts[1].name));
  if (e.turning > 0) {
    all.push_back(fmt::format(
        "From {} sequences on, products take longer than reading weights and cache; {:.1f} decode "
        "together here{}.",
        whole_number(e.turning), e.running,
        e.running < e.turning ? ", so a larger batch costs little time a token" : ""));
  } else {
    all.push_back(
        "Reading outweighs products at every batch: each sequence brings keys and values "
        "of its own.");
  }
  all.push_back(fmt::format("One sequence alone takes {} a token, one prompt alone {}.",
                            format_seconds(e.pass), format_seconds(e.prompt)));
  if (s.plan.disaggregation) return all;
  if (const auto waiting = waiting_sentence(s, e); !waiting.empty()) all.push_back(waiting);
  const double in_flight = std::max(1.0, e.running);
  for (auto& sentence : tensor_sentences(s, tensor_ladder(s, e.sizes.pp, in_flight)))
    all.push_back(std::move(sentence));
  return all;
}

std::string serving_report(const ServingScenario& s, const ServingEstimate& e,
                           const ServingFit& fit, const ReportStyle& style) {
  std::string text = verdict(s, e, fit, style);
  if (e.fits) {
    text += table_section(
        fmt::format("Where a token's time goes ({:.1f} sequences decode together)", e.running),
        token_table(e), style);
    if (!s.plan.disaggregation) {
      text += table_section("Latency over load (closed form, all replicas)",
                            load_table(load_curve(s, e.sizes)), style);
    }
    text += section_title("Why", style);
    for (const auto& sentence : serving_reasons(s, e)) text += bullet(sentence, style);
  }
  text += section_title("Assumed", style);
  text += bullet(fit.basis, style);
  text += bullet(evidence_note(s, fit), style);
  text += bullets(serving_notes(s, e), style);
  return text;
}

// Where prompts are apart, of both: "1 + 2".
std::string size_cell(const ServingChoice& choice, int ServingSizes::*size) {
  if (!choice.apart) return std::to_string(choice.sizes.*size);
  return fmt::format("{} + {}", choice.apart->prefill.*size, choice.apart->decode.*size);
}

Table serving_ranking(const std::vector<ServingCandidate>& plans) {
  Table table{{"tp", "pp", "ep", "dp", left("weights"), "batch", "step", "tokens/s", "a device",
               "first token", "next tokens", "GiB weights", "dollars/M"}};
  for (const ServingCandidate& c : plans) {
    const ServingEstimate& e = c.estimate;
    table.rows.push_back(
        {size_cell(c.choice, &ServingSizes::tp), size_cell(c.choice, &ServingSizes::pp),
         size_cell(c.choice, &ServingSizes::ep), size_cell(c.choice, &ServingSizes::dp),
         std::string(to_string(c.choice.weights)), std::to_string(c.choice.max_num_seqs),
         std::to_string(c.choice.max_num_batched_tokens), rate_text(e.output_per_s),
         rate_text(e.per_device()), latency_text(e.ttft.mean), format_seconds(Seconds(e.tpot.mean)),
         memory_cell(e),
         e.usd_per_million_output > 0 ? fmt::format("{:.3g}", e.usd_per_million_output) : ""});
  }
  return table;
}

Table serving_ranking_rows(const std::vector<ServingCandidate>& plans) {
  Table table{{"tp", "pp", "ep", "dp", left("weights"), "max_num_seqs", "max_num_batched_tokens",
               "output_tokens_per_s", "output_tokens_per_s_per_device", "ttft_s", "tpot_s", "e2e_s",
               "weights_bytes", "usd_per_million_output_tokens", "prefill_tp", "prefill_pp",
               "prefill_ep", "prefill_dp"}};
  const auto number = [](double x) { return std::isfinite(x) ? fmt::format("{:.6g}", x) : ""; };
  for (const ServingCandidate& c : plans) {
    const ServingEstimate& e = c.estimate;
    const auto& sizes = c.choice.sizes;
    table.rows.push_back(
        {std::to_string(sizes.tp), std::to_string(sizes.pp), std::to_string(sizes.ep),
         std::to_string(sizes.dp), std::string(to_string(c.choice.weights)),
         std::to_string(c.choice.max_num_seqs), std::to_string(c.choice.max_num_batched_tokens),
         number(e.output_per_s), number(e.per_device()), number(e.ttft.mean), number(e.tpot.mean),
         number(e.e2e.mean), number(e.memory.weights.value),
         e.usd_per_million_output > 0 ? number(e.usd_per_million_output) : ""});
    for (const auto size :
         {&ServingSizes::tp, &ServingSizes::pp, &ServingSizes::ep, &ServingSizes::dp}) {
      table.rows.back().push_back(c.choice.apart ? std::to_string(c.choice.apart->prefill.*size)
                                                 : "");
    }
  }
  return table;
}

namespace {

const char* proof_of(const ServingGoal& goal) {
  if (goal.output_per_s > 0) return "reaches the target on fewer devices, so none is cheaper";
  if (goal.usd_per_hour > 0) return "gives more tokens/s for the budget";
  return "with as many replicas as the devices hold gives more tokens a device, or is cheaper a "
         "token (serving.throughput_target and budget look at fewer)";
}

bool first_in_closed_form(const ServingSearch& found) {
  return std::ranges::find(found.first, found.best.front().choice) != found.first.end();
}

// What the other kind of plan would do.
std::string other_kind(const ServingScenario& s, const ServingCandidate& c) {
  const ServingEstimate& e = c.estimate;
  const ServingScenario chosen = with_choice(s, c.choice);
  return fmt::format(
      "{} ({}, batch {}): {} output tokens/s on {} devices, first token {}, next "
      "tokens {}.",
      c.choice.apart ? "Best with prompts on devices of their own"
                     : "Best with prompts and decoding on the same devices",
      plan_text(chosen, c.choice.sizes), c.choice.max_num_seqs, rate_text(e.output_per_s),
      e.devices, latency_text(e.ttft.mean), format_seconds(Seconds(e.tpot.mean)));
}

}  // namespace

std::vector<std::string> search_sentences(const ServingScenario& s, const ServingSearch& found) {
  const auto count = [](std::size_t n) { return format_integer(static_cast<long long>(n)); };
  std::vector<std::string> all{fmt::format(
      "{} plans, {} of them with prompts on devices of their own, all priced in closed form: {} "
      "fit, {} of them keep what is asked.",
      count(found.choices), count(found.apart_choices), count(found.fit), count(found.keep))};
  if (found.simulated > 0) {
    all.push_back(fmt::format("{} of them simulated request by request{}.", count(found.simulated),
                              found.broken > 0
                                  ? fmt::format(": {} of these miss what is asked, which the "
                                                "closed form says they keep, and are no answer",
                                                count(found.broken))
                                  : ""));
  }
  if (found.best.empty()) return all;
  const bool apart = found.best.front().choice.apart.has_value();
  if (first_in_closed_form(found)) {
    all.push_back(fmt::format("Proved: under the closed form no plan with prompts on {} {}.",
                              apart ? "devices of their own" : "the same devices",
                              proof_of(s.serving.goal)));
  } else {
    all.emplace_back(
        "The closed form ranks other plans first: the answer is the best of those simulated, by "
        "what is reported of them.");
  }
  if (apart && found.together) all.push_back(other_kind(s, *found.together));
  if (!apart && found.apart) all.push_back(other_kind(s, *found.apart));
  return all;
}

const char* unanswered_title(const ServingSearch& found) {
  return found.any_fits() ? "No plan keeps what is asked" : "Nothing fits";
}

std::string serving_search_report(const ServingScenario& s, const ServingSearch& found,
                                  const ServingFit& fit, const ReportStyle& style) {
  std::string text = serving_heading(s, style);
  if (found.best.empty()) {
    text +=
        section_title(unanswered_title(found), style) + bullets(serving_remedies(s, found), style);
    if (!found.nearest.empty()) {
      text += table_section("Nearest, simulated: none keeps what is asked",
                            serving_ranking(found.nearest), style);
    }
  } else {
    const ServingCandidate& best = found.best.front();
    text += serving_report(with_choice(s, best.choice), best.estimate, fit, style);
    text += table_section(
        "Ranking of those that keep what is asked, simulated (one row for each sizes and format)",
        serving_ranking(found.best), style);
  }
  if (!found.front.empty()) {
    text += table_section("Front: time a token against tokens/s a device (closed form)",
                          serving_ranking(found.front), style);
  }
  text += section_title("Search", style) + bullets(search_sentences(s, found), style);
  return text;
}

}  // namespace planner
