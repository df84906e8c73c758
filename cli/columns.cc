#include "columns.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "table.h"

namespace ample::cli {
namespace {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string::npos) return parts;
    begin = comma + 1;
  }
}

Index find_by_name(const std::vector<std::string>& names, const std::string& name,
                   const Columns& model, const std::string& path) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw DataError(fmt::format("{}: no column '{}', expected the model's columns {}", path, name,
                                fmt::join(model.names, ", ")));
  }
  if (std::find(found + 1, names.end(), name) != names.end()) {
    throw DataError(fmt::format("{}: two columns '{}', expected one", path, name));
  }
  return found - names.begin();
}

}  // namespace

std::vector<Index> Columns::all() const {
  std::vector<Index> columns = inputs;
  columns.push_back(target);
  if (time) columns.push_back(*time);
  return columns;
}

Columns choose_columns(const std::vector<std::string>& names, Index count,
                       const std::string& target, const std::string& inputs,
                       const std::string& time) {
  if (count < 2) {
    throw DataError(fmt::format("{} column, expected at least 2: an input and the target", count));
  }
  Columns columns;
  columns.count = count;
  if (!time.empty()) columns.time = find_column(names, count, time);
  const Index last = columns.time == count - 1 ? count - 2 : count - 1;
  columns.target = target.empty() ? last : find_column(names, count, target);
  if (columns.time == columns.target) {
    throw UsageError(fmt::format("--time: column '{}' is the target, expected another", time));
  }
  if (inputs.empty()) {
    for (Index i = 0; i < count; ++i) {
      if (i != columns.target && i != columns.time) columns.inputs.push_back(i);
    }
    if (columns.inputs.empty()) {
      throw UsageError("--time leaves no column for an input, expected one; --inputs names them");
    }
  } else {
    std::set<Index> taken{columns.target};
    for (const std::string& input : split_at_commas(inputs)) {
      const Index column = find_column(names, count, input);
      if (!taken.insert(column).second) {
        throw UsageError(fmt::format("--inputs: column '{}' is {}, expected each column once",
                                     input,
                                     column == columns.target ? "the target" : "there twice"));
      }
      columns.inputs.push_back(column);
    }
  }
  // Names that do not tell columns apart are not kept: other tables are then read by place.
  for (const Index i : columns.all()) {
    if (names.empty()) break;
    const std::string& name = names[static_cast<std::size_t>(i)];
    if (std::ranges::count(names, name) > 1) {
      columns.names.clear();
      break;
    }
    columns.names.push_back(name);
  }
  return columns;
}

Columns find_columns(const Columns& model, const std::vector<std::string>& names, Index count,
                     Need need, const std::string& data) {
  const std::string path = data == "-" ? "standard input" : data;
  Columns found = model;
  found.count = count;
  if (!model.names.empty() && !names.empty()) {
    for (std::size_t i = 0; i < found.inputs.size(); ++i) {
      found.inputs[i] = find_by_name(names, model.names[i], model, path);
    }
    if (need == Need::inputs_and_target) {
      found.target = find_by_name(names, model.names[found.inputs.size()], model, path);
      if (found.time) found.time = find_by_name(names, model.names.back(), model, path);
    }
    return found;
  }
  if (count == model.count) return found;
  if (need == Need::inputs && count == model.dimension()) {
    std::iota(found.inputs.begin(), found.inputs.end(), Index{0});
    return found;
  }
  const std::string inputs_alone =
      need == Need::inputs ? fmt::format("{} (the inputs) or ", model.dimension()) : "";
  throw DataError(fmt::format("{}: {} column{}, expected {}{} (as in the data of the fit)", path,
                              count, count == 1 ? "" : "s", inputs_alone, model.count));
}

std::string to_note(const Columns& columns) {
  nlohmann::json note{{"count", columns.count},
                      {"inputs", columns.inputs},
                      {"target", columns.target},
                      {"names", columns.names}};
  if (columns.time) note["time"] = *columns.time;
  return note.dump();
}

Columns columns_of(const Snapshot& snapshot, const std::string& path) {
  const Index D = snapshot.model.dimension();
  const auto note = snapshot.notes.find(kColumnsNote);
  Columns columns;
  if (note == snapshot.notes.end()) {
    columns.count = D + 1;
    columns.inputs.resize(static_cast<std::size_t>(D));
    std::iota(columns.inputs.begin(), columns.inputs.end(), Index{0});
    columns.target = D;
    return columns;
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(note->second);
    const auto whole = [](const nlohmann::json& number) {
      if (!number.is_number_integer()) throw ModelFileError("");
      return number.get<Index>();
    };
    columns.count = whole(json.at("count"));
    for (const nlohmann::json& input : json.at("inputs")) columns.inputs.push_back(whole(input));
    columns.target = whole(json.at("target"));
    if (json.contains("time")) columns.time = whole(json.at("time"));
    columns.names = json.at("names").get<std::vector<std::string>>();
  } catch (const ModelFileError&) {
    throw ModelFileError(
        fmt::format("{}: its note of columns has a number that is not whole", path));
  } catch (const nlohmann::json::exception&) {
    throw ModelFileError(fmt::format("{}: its note of columns is not understood", path));
  }
  const std::vector<Index> all = columns.all();
  const bool inside =
      std::ranges::all_of(all, [&](Index column) { return column >= 0 && column < columns.count; });
  const bool named = columns.names.empty() || columns.names.size() == all.size();
  // The time may be an input too.
  const auto different = [&](const auto& values) {
    const auto count = std::min(values.size(), columns.inputs.size() + 1);
    return std::set(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)).size() ==
           count;
  };
  const bool distinct =
      different(all) && different(columns.names) && columns.time != columns.target;
  if ((D > 0 && columns.dimension() != D) || !inside || !named || !distinct) {
    throw ModelFileError(
        fmt::format("{}: its note of columns does not fit a model of {} inputs", path, D));
  }
  return columns;
}

}  // namespace ample::cli
