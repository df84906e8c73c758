#include "run_program.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ample/model_file_error.h"
#include "ample/types.h"
#include "diagnostics.h"
#include "errors.h"
#include "interrupt.h"

namespace ample::cli {
namespace {

enum ExitCode { kBug = 1, kUsage = 2, kData = 3, kNumerical = 4, kModelFile = 5 };

/// A standard stream that the caller closed must not become the next file that is opened: messages
/// would be written into a model. Its number is taken, by something that fails as a closed one
/// does.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int file = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (file >= 0 && file != stream) ::close(file);
  }
}

std::string name_of_command(const CLI::App& app) {
  std::string name = app.get_name();
  for (auto chosen = app.get_subcommands(); !chosen.empty();) {
    name += " " + chosen.front()->get_name();
    chosen = chosen.front()->get_subcommands();
  }
  return name;
}

/// An empty value is nearly always a variable of the shell that was not set.
void refuse_empty_values(CLI::App& app) {
  const auto not_empty = [](const std::string& text) {
    return text.empty() ? std::string("is empty, expected a value") : std::string();
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->check(CLI::Validator(not_empty, ""));
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

/// Output that did not arrive, on a full disk say, is not success.
void flush_output() {
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw Interrupted{SIGPIPE};
    throw DataError("standard output cannot be written");
  }
}

void parse(CLI::App& app, int argc, char** argv) {
  // CLI11 would only say that a command is missing.
  const std::string first = argc > 1 ? argv[1] : "-";
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == first; };
  if (app.get_require_subcommand_min() > 0 && !first.starts_with('-') &&
      app.get_subcommands(is_first).empty()) {
    throw UsageError(
        fmt::format("unknown command '{}', expected one of {} --help", first, app.get_name()));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    app.exit(request);
  }
  flush_output();
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error like any other
  refuse_empty_values(app);
  const auto complain = [&](const std::string& message, int code) {
    say(name_of_command(app), message);
    return code;
  };
  try {
    parse(app, argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{}; see {} --help", error.what(), name_of_command(app)), kUsage);
  } catch (const UsageError& error) {
    return complain(error.what(), kUsage);
  } catch (const std::invalid_argument& error) {
    return complain(error.what(), kUsage);
  } catch (const DataError& error) {
    return complain(error.what(), kData);
  } catch (const NumericalError& error) {
    return complain(error.what(), kNumerical);
  } catch (const ModelFileError& error) {
    return complain(error.what(), kModelFile);
  } catch (const Interrupted& interruption) {
    return 128 + interruption.signal;
  } catch (const std::bad_alloc&) {
    return complain("not enough memory; use smaller batches or --max-inducing", kNumerical);
  } catch (const std::exception& error) {
    return complain(error.what(), kBug);
  }
}

}  // namespace ample::cli
