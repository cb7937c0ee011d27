#include "planner/frameworks/megatron_hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace planner {

namespace {

constexpr std::string_view layer_flag = "--hybrid-layer-pattern",
                           old_flag = "--hybrid-override-pattern";

bool has(const MegatronArguments& arguments, std::string_view flag) {
  return arguments.find(flag) != nullptr;
}

// Logs of other models print ratios of 0.
bool has_ratio(const MegatronArguments& arguments, std::string_view flag) {
  const MegatronArgument* a = arguments.find(flag);
  if (a == nullptr || a->values.empty()) return a != nullptr;
  double value = 1;
  const std::string& text = a->values.front();
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value != 0;
}

// A stack specification of a hybrid, or of Mamba as it was called before.
bool has_stack(const MegatronArguments& arguments) {
  const MegatronArgument* spec = arguments.find("--spec");
  return spec != nullptr && std::ranges::any_of(spec->values, [](const std::string& word) {
           return word.find("hybrid_stack_spec") != std::string::npos ||
                  word.find("mamba_stack_spec") != std::string::npos;
         });
}

// Python's round: halves to the even number.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

// Before patterns were required, ratios gave one, and nothing gave scans alone.
std::string from_ratios(MegatronImport& in) {
  constexpr std::int64_t most = 100'000;
  const std::int64_t layers = in.whole("--num-layers", 0);
  const double attention = in.number("--hybrid-attention-ratio").value_or(0);
  const double mlp = in.number("--hybrid-mlp-ratio").value_or(0);
  if (layers < 1 || layers > most) return "";
  for (const char* flag : {"--hybrid-attention-ratio", "--hybrid-mlp-ratio"}) {
    const double ratio = in.number(flag).value_or(0);
    if (ratio < 0 || attention + mlp > 1) in.refuse(flag, "is no ratio of layers");
  }
  return pattern_of_ratios(layers, attention, mlp);
}

// The layers of prediction after each slash, which are all the same.
void read_prediction(MegatronImport& in, std::string_view flag, std::string_view text,
                     HybridPattern& out) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('/', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    if (out.depths++ == 0) out.prediction = one;
    if (one != out.prediction) in.refuse(flag, "has layers of prediction that differ by depth");
    at = end + 1;
  }
  if (out.prediction.empty()) out.depths = 0;
}

void check_letters(MegatronImport& in, std::string_view flag, std::string_view letters) {
  const std::size_t wrong = letters.find_first_not_of("M*-EG+");
  if (wrong == std::string_view::npos) return;
  if (letters[wrong] == 'D') in.refuse(flag, "has D, sparse attention, which has no key here");
  in.refuse(flag, "has other letters than M, *, -, E, G and +");
}

// The key's letters: latent attention is a matter of its ranks.
std::string letters_of_key(std::string letters) {
  std::ranges::replace(letters, '+', '*');
  return letters;
}

// A depth of mtp_layers is attention and the feed-forward of the last layer.
std::string prediction_of(bool experts) { return experts ? "*E" : "*-"; }

void read_prediction_model(MegatronImport& in, const HybridPattern& pattern) {
  const bool given = in.whole("--mtp-num-layers", 0) > 0;
  const char* flag = in.has(layer_flag) ? layer_flag.data() : old_flag.data();
  if (pattern.depths == 0) {
    if (given) in.leave_out("--mtp-num-layers", "the pattern has no layers of prediction");
    return;
  }
  const std::string own = prediction_of(pattern.letters.ends_with('E'));
  if (letters_of_key(pattern.prediction) != own || !in.has_experts()) {
    in.leave_out(flag, fmt::format("its layers of multi-token prediction are left out: mtp_layers "
                                   "of such a model {}",
                                   in.has_experts() ? fmt::format("are {}", own)
                                                    : std::string("needs experts")));
    return;
  }
  in.put("model.mtp_layers", fmt::format("{}", pattern.depths));
  in.leave_out("--mtp-use-repeated-layer", "each depth has weights of its own here");
}

void usual(MegatronImport& in, const char* flag, const char* key, const std::string& value) {
  if (!in.has(flag)) in.put(key, value);
}

void read_scans(MegatronImport& in) {
  in.copy_all("model.", WordOf::scan);
  usual(in, "--mamba-head-dim", "model.mamba_head_dim", "64");
  usual(in, "--mamba-num-groups", "model.ssm_groups", "8");
  usual(in, "--mamba-state-dim", "model.state_size", "128");
  // core/ssm/mamba_mixer.py: twice as many channels as the hidden size.
  const double channels = std::max(1.0, in.number("--mamba-head-dim").value_or(64));
  const auto heads =
      static_cast<std::int64_t>(2 * in.number("--hidden-size").value_or(0) / channels);
  if (heads > 0) usual(in, "--mamba-num-heads", "model.mamba_heads", fmt::format("{}", heads));
}

}  // namespace

bool is_hybrid(const MegatronArguments& arguments) {
  if (has(arguments, layer_flag) || has(arguments, old_flag)) return true;
  return has(arguments, "--is-hybrid-model") || has_stack(arguments) ||
         has_ratio(arguments, "--hybrid-attention-ratio") ||
         has_ratio(arguments, "--hybrid-mlp-ratio");
}

HybridPattern hybrid_pattern(MegatronImport& in) {
  const std::string_view flag = in.has(layer_flag) || !in.has(old_flag) ? layer_flag : old_flag;
  const std::string text = in.has(flag) ? in.text(flag) : from_ratios(in);
  const std::size_t slash = std::min(text.find('/'), text.size());
  HybridPattern out;
  const std::string main = text.substr(0, slash);
  for (std::size_t at = 0; main.find('|') != std::string::npos && at <= main.size();) {
    const std::size_t end = std::min(main.find('|', at), main.size());
    out.stages.push_back(static_cast<int>(end - at));
    at = end + 1;
  }
  out.letters = main;
  std::erase(out.letters, '|');
  if (slash < text.size()) {
    read_prediction(in, flag, std::string_view(text).substr(slash + 1), out);
  } else if (const std::int64_t depths = in.whole("--mtp-num-layers", 0); depths > 0) {
    out.prediction = in.text("--mtp-hybrid-override-pattern");
    out.depths = out.prediction.empty() ? 0 : depths;
  }
  if (!in.has(flag)) return out;
  check_letters(in, flag, out.letters + out.prediction);
  if (out.letters.empty()) in.refuse(flag, "has no layers");
  if (out.latent() && out.letters.find('*') != std::string::npos)
    in.refuse(flag, "has both * and +, which Megatron-LM refuses");
  return out;
}

std::int64_t layers_of_model(MegatronImport& in) {
  if (!is_hybrid(in.arguments())) return in.whole("--num-layers", 0);
  return static_cast<std::int64_t>(hybrid_pattern(in).letters.size());
}

// Attention first, with scans between; then MLPs in place of some scans. The sums are in the order
// of pattern_from_ratios, whose halves they meet.
std::string pattern_of_ratios(std::int64_t layers, double attention, double mlp) {
  const auto all = static_cast<std::size_t>(layers);
  const std::int64_t attentions = rounded(static_cast<double>(layers) * attention);
  const double section =
      static_cast<double>(layers - attentions) / static_cast<double>(attentions + 1);
  std::string letters(all, 'M');
  double left = section;
  for (char& letter : letters) {
    if (left < .5) letter = '*';
    left += left < .5 ? section : -1;
  }
  const std::int64_t mlps = rounded(static_cast<double>(layers) * mlp);
  if (mlps == 0) return letters;
  const double ratio = static_cast<double>(layers - attentions - mlps) / static_cast<double>(mlps);
  left = ratio;
  for (char& letter : letters) {
    if (letter != 'M') continue;
    if (left < .5) letter = '-';
    left += left < .5 ? ratio : -1;
  }
  return letters;
}

// Scans have a convolution of four taps, and delta nets share it with them here.
void read_delta_nets(MegatronImport& in, bool scans) {
  constexpr double scan_taps = 4;
  in.copy_all("model.", WordOf::delta_net);
  usual(in, "--linear-num-key-heads", "model.linear_num_key_heads", "16");
  usual(in, "--linear-num-value-heads", "model.linear_num_value_heads", "32");
  usual(in, "--linear-key-head-dim", "model.linear_key_head_dim", "128");
  usual(in, "--linear-value-head-dim", "model.linear_value_head_dim", "128");
  const double taps = in.number("--linear-conv-kernel-dim").value_or(scan_taps);
  if (scans && taps != scan_taps)
    return in.leave_out("--linear-conv-kernel-dim", "taken as 4, as scans have it");
  if (taps != scan_taps) in.put("model.conv_kernel", fmt::format("{}", taps));
  if (in.text("--experimental-attention-variant") == "gdn2")
    in.leave_out("--experimental-attention-variant", "priced as gated delta nets");
}

void read_hybrid_model(MegatronImport& in) {
  const HybridPattern pattern = hybrid_pattern(in);
  in.any({"--spec", "--is-hybrid-model", layer_flag, old_flag});
  if (pattern.letters.empty())
    return in.miss("model.layer_pattern", "the arguments have no --hybrid-layer-pattern");
  const auto layers = static_cast<double>(pattern.letters.size());
  if (in.number("--num-layers").value_or(layers) != layers)
    in.leave_out("--num-layers", fmt::format("the pattern has {} layers", layers));
  std::erase_if(in.job.scenario.find("model")->entries,
                [](const costmodel::Value::Entry& entry) { return entry.key == "layers"; });
  in.put("model.layer_pattern", letters_of_key(pattern.letters));
  const bool scans = pattern.letters.find('M') != std::string::npos;
  if (scans) read_scans(in);
  if (pattern.letters.find('G') != std::string::npos) read_delta_nets(in, scans);
  read_prediction_model(in, pattern);
}

std::string hybrid_layer_pattern(const costmodel::ParallelPlan& plan,
                                 const costmodel::ModelSpec& model) {
  std::string text;
  std::size_t at = 0;
  for (int stage = 0; stage < static_cast<int>(plan.virtual_stages()); ++stage) {
    const auto layers = static_cast<std::size_t>(costmodel::layers_of(plan, model, stage));
    text += (stage > 0 ? "|" : "") + model.layer_pattern.substr(at, layers);
    at += layers;
  }
  for (std::int64_t depth = 0; depth < model.mtp_layers; ++depth)
    text += "/" + prediction_of(model.has_experts(model.layers - 1));
  if (model.latent_attention()) std::ranges::replace(text, '*', '+');
  return text;
}

}  // namespace planner
