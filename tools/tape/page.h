// One HTML page that shows a dump of the tape: entries as rows, bytes held over a step, bytes by
// scope.
#pragma once
#include <string>

#include "taper/autograd/lens/dump.h"

namespace taper::tools {

// In one file that refers to nothing outside. `name` is what the page is called.
std::string tape_html(const lens::TapeDump& dump, const std::string& name);

}  // namespace taper::tools
