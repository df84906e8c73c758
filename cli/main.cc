// The program: finds the command and turns what goes wrong into one line and an exit code. The
// commands, and how to add one, are in commands.h.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ample/snapshot.h"
#include "ample/types.h"
#include "ample/version.h"
#include "commands.h"
#include "errors.h"
#include "interrupt.h"

namespace ample::cli {
namespace {

enum ExitCode { kBug = 1, kUsage = 2, kData = 3, kNumerical = 4, kModelFile = 5 };

std::string name_of_command(const CLI::App& app) {
  std::string name = "ample";
  for (auto chosen = app.get_subcommands(); !chosen.empty();) {
    name += " " + chosen.front()->get_name();
    chosen = chosen.front()->get_subcommands();
  }
  return name;
}

int complain(const CLI::App& app, std::string message, int code) {
  // Names come from files and from the user: one line stays one line whatever they hold.
  std::ranges::replace_if(
      message, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  fmt::print(stderr, "{}: {}\n", name_of_command(app), message);
  return code;
}

int run(int argc, char** argv) {
  CLI::App app("Continual Gaussian-process regression that sizes itself.", "ample");
  app.set_version_flag("--version", std::string("ample ") + version());
  app.require_subcommand(1);
  add_fit(app);
  add_update(app);
  add_predict(app);
  add_inspect(app);
  add_demo(app);
  add_data(app);
  add_reproduce(app);
  app.footer(
      "Exit codes: 0 done, 2 usage, 3 data, 4 numerical, 5 model file.\n"
      "`ample COMMAND --help` explains a command. Example:\n"
      "  ample fit data.csv --save model.ample && ample predict model.ample new.csv");
  try {
    // CLI11 would only say that a command is missing.
    const std::string first = argc > 1 ? argv[1] : "-";
    const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
    if (!first.starts_with('-') && app.get_subcommands(is_first).empty()) {
      throw UsageError(fmt::format("unknown command '{}', expected one of ample --help", first));
    }
    app.parse(argc, argv);
    // Output that did not arrive, on a full disk say, is not success.
    if (std::fflush(stdout) != 0) throw DataError("standard output cannot be written");
    return 0;
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return complain(app, fmt::format("{}; see {} --help", error.what(), name_of_command(app)),
                    kUsage);
  } catch (const UsageError& error) {
    return complain(app, error.what(), kUsage);
  } catch (const std::invalid_argument& error) {
    return complain(app, error.what(), kUsage);
  } catch (const DataError& error) {
    // A signal ends standard input early; what is then missing is not the data's fault.
    if (interrupted() != 0) return 128 + interrupted();
    return complain(app, error.what(), kData);
  } catch (const NumericalError& error) {
    return complain(app, error.what(), kNumerical);
  } catch (const ModelFileError& error) {
    return complain(app, error.what(), kModelFile);
  } catch (const Interrupted& interruption) {
    return 128 + interruption.signal;
  } catch (const std::bad_alloc&) {
    return complain(app, "not enough memory; use smaller batches or --max-inducing", kNumerical);
  } catch (const std::exception& error) {
    return complain(app, error.what(), kBug);
  }
}

}  // namespace
}  // namespace ample::cli

int main(int argc, char** argv) { return ample::cli::run(argc, argv); }
