// The program `ample`. The commands, and how to add one, are in commands.h.
#include <string>

#include <CLI/CLI.hpp>

#include "ample/version.h"
#include "commands.h"
#include "run_program.h"

int main(int argc, char** argv) {
  using namespace ample::cli;
  CLI::App app("Continual Gaussian-process regression that sizes itself.", "ample");
  app.set_version_flag("--version", std::string("ample ") + ample::version());
  app.require_subcommand(1);
  add_fit(app);
  add_update(app);
  add_predict(app);
  add_inspect(app);
  add_compress(app);
  add_merge(app);
  add_demo(app);
  app.footer(
      "Exit codes: 0 done, 2 usage, 3 data, 4 numerical, 5 model file.\n"
      "`ample COMMAND --help` explains a command. Example:\n"
      "  ample fit data.csv --save model.ample && ample predict model.ample new.csv");
  return run_program(app, argc, argv);
}
