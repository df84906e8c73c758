// The commands of `ample-reproduce`, made as those of `ample` are (cli/commands.h).
#pragma once

namespace CLI {
class App;
}

namespace ample::experiments {

/// The program itself: NAME..., its options and its work.
void add_reproduce(CLI::App& app);
/// The subcommand `data`.
void add_data(CLI::App& app);

}  // namespace ample::experiments
