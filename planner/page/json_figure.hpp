// Numbers of a report's JSON as HTML, the number's own text and its place next to what people read:
// <data value="17.140302606851797" data-pointer="/time/iteration_s">17.14 s</data>. A null is a
// dash.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planner {

using Json = nlohmann::ordered_json;

std::string figure(const Json& number, const std::function<std::string(double)>& shown);

std::string seconds_figure(const Json& seconds);
std::string bytes_figure(const Json& bytes);
std::string gib_figure(const Json& bytes);       // in GiB, without the unit
std::string share_figure(const Json& fraction);  // in per cent
std::string count_figure(const Json& number);    // "1,536", "119", "8.03 B"

// The value under the keys, one below the other; null where there is none.
const Json& at(const Json& json, std::initializer_list<const char*> keys);

// The number there, 0 where there is none.
double number_at(const Json& json, std::initializer_list<const char*> keys);

// A value as text for people, not yet HTML: strings as they are, lists with commas, maps as
// "granularity full, layers 1".
std::string words(const Json& value);

// The elements of an array of strings as the items of a list.
std::string sentences(const Json& list);

// A figure in large, of HTML or of text.
std::string tile(const std::string& value, const std::string& name);
std::string text_tile(const std::string& value, const std::string& name);

// A section of the page; "" where it holds nothing. `title` is text.
std::string section(const std::string& title, const std::string& body);

// A section's part that is closed at first. `title` is text.
std::string folded(const std::string& title, const std::string& body);

}  // namespace planner
