// What the programs share around their commands: what goes wrong becomes one line and an exit code.
#pragma once

namespace CLI {
class App;
}

namespace ample::cli {

/// Parses the arguments, which runs the command chosen, and returns the exit code. The commands
/// throw; commands.h says what becomes of it. An option or argument that is given must not be
/// empty.
int run_program(CLI::App& app, int argc, char** argv);

}  // namespace ample::cli
