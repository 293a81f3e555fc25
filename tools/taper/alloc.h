// `taper alloc`: records, replays, plans and shows how memory was allocated.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace taper::tools {

// Adds the command and its subcommands. A parse that meets one of them sets `run`, which does the
// work, gives the exit code, and throws where something is wrong.
void add_alloc(CLI::App& app, std::function<int()>& run);

}  // namespace taper::tools
