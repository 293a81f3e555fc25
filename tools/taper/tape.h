// `taper tape`: shows a saved dump of the tape.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace taper::tools {

// Adds the command. A parse that meets it sets `run`, which does the work, gives the exit code, and
// throws where something is wrong.
void add_tape(CLI::App& app, std::function<int()>& run);

}  // namespace taper::tools
