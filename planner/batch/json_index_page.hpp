// A batch's index as a page of HTML: how many scenarios ended how, the figures of those that have a
// report, and why the others have none.
#pragma once

#include <string>

namespace planner {

// `index`: see index_json. A scenario's name leads to NAME.html, which lies next to the page.
std::string index_page(const std::string& index);

}  // namespace planner
