#include "calibrate/fit/fitted_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

// Formats a number as a person writes it in a configuration.
std::string with_unit(const std::string& constant, double value) {
  if (constant.ends_with("_s")) return fmt::format("{:.4g} us", value * 1e6);
  if (constant.ends_with("_bytes")) return fmt::format("{:.4g} kB", value * 1e-3);
  return fmt::format("{:.4g}", value);
}

std::string last_word(const std::string& path) { return path.substr(path.rfind('.') + 1); }
std::string all_but_last(const std::string& path) { return path.substr(0, path.rfind('.')); }

// The map that contains a constant: a group of a device, a tier of a cluster.
Value& home_of(Value& root, const std::string& constant) {
  const std::string path = all_but_last(constant);
  if (!path.starts_with("tiers.")) {
    Value* group = &root;
    for (std::size_t from = 0; from <= path.size();) {
      const std::size_t dot = std::min(path.find('.', from), path.size());
      group = group->find(path.substr(from, dot - from));
      SHARDPLAN_CHECK(group != nullptr);
      from = dot + 1;
    }
    return *group;
  }
  for (Value& tier : root.find("tiers")->items) {
    const Value* name = tier.find("name");
    if (name != nullptr && name->text == path.substr(6)) return tier;
  }
  SHARDPLAN_CHECK(!"the tier is in the cluster it was fitted for");
  return root;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string sentence(const FittedGroup& group) {
  return fmt::format("{} {}, median error {:.1f} %, 90th percentile {:.1f} %, from {}",
                     group.points, group.what, group.after.median, group.after.p90,
                     fmt::join(group.sources, "; "));
}

struct Provenance {
  std::vector<std::string> fitted, kept;
  std::string told;
};

void rewrite_source(Value& home, const Provenance& from, const std::string& base_name) {
  const Value* old = home.find("source");
  std::string text =
      fmt::format("fitted by shardplan calibrate: {}: {}", joined(from.fitted), from.told);
  if (old != nullptr && old->is_scalar())
    text += fmt::format("; the other constants as in {}: {}", base_name, old->text);
  Value value = scalar_value(text);
  value.quoted = true;
  home.set("source", value);
}

Value text_value(const std::string& text) {
  Value value = scalar_value(text);
  value.quoted = true;
  return value;
}

Value record_of(const FittedGroup& group, const FittedConstant& constant) {
  Value record;
  record.kind = Value::Kind::map;
  record.set("constant", scalar_value(constant.name));
  record.set("of", text_value(group.what));
  record.set("value", scalar_value(with_unit(constant.name, constant.after)));
  if (constant.at_bound) record.set("at_bound", scalar_value("true"));
  record.set("before", scalar_value(with_unit(constant.name, constant.before)));
  record.set("points", scalar_value(std::to_string(group.points)));
  record.set("median_error_pct", scalar_value(fmt::format("{:.2f}", group.after.median)));
  record.set("p90_error_pct", scalar_value(fmt::format("{:.2f}", group.after.p90)));
  record.set("median_error_before_pct", scalar_value(fmt::format("{:.2f}", group.before.median)));
  record.set("p90_error_before_pct", scalar_value(fmt::format("{:.2f}", group.before.p90)));
  Value sources;
  sources.kind = Value::Kind::sequence;
  for (const auto& title : group.sources) sources.items.push_back(text_value(title));
  record.set("sources", sources);
  record.set("measured", text_value(group.measured));
  return record;
}

}  // namespace

Value fitted_profile(const Value& base, const std::string& base_name,
                     const std::vector<FittedGroup>& groups) {
  Value profile = base;
  Value records;
  records.kind = Value::Kind::sequence;
  std::set<std::string> written;
  std::map<std::string, Provenance> homes;  // by path
  for (const auto& group : groups) {
    std::set<std::string> touched;
    for (const auto& constant : group.constants) {
      if (!constant.fitted) continue;
      records.items.push_back(record_of(group, constant));
      if (!constant.written) continue;
      if (!written.insert(constant.name).second) continue;
      home_of(profile, constant.name)
          .set(last_word(constant.name), scalar_value(with_unit(constant.name, constant.after)));
      const std::string home = all_but_last(constant.name);
      homes[home].fitted.push_back(last_word(constant.name));
      if (touched.insert(home).second) homes[home].told = sentence(group);
    }
  }
  for (const auto& [path, from] : homes)
    rewrite_source(home_of(profile, path + ".source"), from, base_name);
  profile.set("fit", records);
  return profile;
}

std::string comparison_head() {
  return fmt::format("{:<20} {:<48} {:>7} {:>15} {:>15} {:>8}\n", "of", "kind", "points",
                     "median error", "90th percentile", "bias");
}

std::string comparison(const std::string& name, const std::vector<FittedGroup>& groups) {
  std::string text;
  for (const auto& g : groups) {
    text +=
        fmt::format("{:<20} {:<48} {:>7} {:>15} {:>15} {:>8}\n", printable(name), printable(g.what),
                    g.points, fmt::format("{:.1f} -> {:.1f} %", g.before.median, g.after.median),
                    fmt::format("{:.1f} -> {:.1f} %", g.before.p90, g.after.p90),
                    fmt::format("{:+.1f} %", g.before.bias));
  }
  return text;
}

std::string fit_report(const std::vector<FittedGroup>& groups, const std::vector<Unused>& unused) {
  std::string text =
      fmt::format("{:<36} {:>10} {:>10} {:>7} {:>15} {:>15}  {}\n", "constant", "before", "fitted",
                  "points", "median error", "90th percentile", "of");
  for (const auto& group : groups) {
    for (const auto& c : group.constants) {
      if (!c.fitted) continue;
      text +=
          fmt::format("{:<36} {:>10} {:>10} {:>7} {:>15} {:>15}  {}\n", c.name,
                      with_unit(c.name, c.before), with_unit(c.name, c.after), group.points,
                      fmt::format("{:.1f} -> {:.1f} %", group.before.median, group.after.median),
                      fmt::format("{:.1f} -> {:.1f} %", group.before.p90, group.after.p90),
                      printable(group.what) + (c.at_bound ? " (at its bound)" : ""));
    }
  }
  std::map<std::string, int> reasons;
  for (const auto& u : unused) ++reasons[u.reason];
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("not used: {} of the measurements: {}\n", count, printable(reason));
  }
  return text;
}

}  // namespace calibrate
