// The commands of the program. A command is one file, cli/<command>.cc, with one entry point
//
//   void add_<command>(CLI::App& app);
//
// that adds the subcommand: its options, its help with an example as footer(), and, as callback(),
// its work. The callback reports what goes wrong by throwing; run_program.cc turns that into one
// line on standard error and the exit code:
//
//   UsageError, std::invalid_argument   2   an option, a method, a value, the text of a kernel
//   DataError                           3   a data file, or its shape
//   NumericalError                      4   a computation that could not be carried out
//   ModelFileError                      5   a model file
//   Interrupted                       128 + the signal, without a line; a closed pipe is SIGPIPE
//
// A new command: write the file, declare it here, call it in main.cc.
#pragma once

namespace CLI {
class App;
}

namespace ample::cli {

void add_fit(CLI::App& app);
void add_update(CLI::App& app);
void add_predict(CLI::App& app);
void add_inspect(CLI::App& app);
void add_compress(CLI::App& app);
void add_merge(CLI::App& app);
void add_demo(CLI::App& app);

}  // namespace ample::cli
