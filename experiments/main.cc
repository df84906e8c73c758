// The program `ample-reproduce`: the paper's experiments, and their data sets.
#include <string>

#include <CLI/CLI.hpp>

#include "ample/version.h"
#include "reproduce.h"
#include "run_program.h"

int main(int argc, char** argv) {
  CLI::App app("Repeat the paper's experiments and set the results beside the paper's.",
               "ample-reproduce");
  app.set_version_flag("--version", std::string("ample-reproduce ") + ample::version());
  ample::experiments::add_reproduce(app);
  ample::experiments::add_data(app);
  return ample::cli::run_program(app, argc, argv);
}
