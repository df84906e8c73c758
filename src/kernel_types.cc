#include "kernel_types.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>
#include <utility>

#include "check.h"
#include "kernel_words.h"

namespace ample {
namespace {

using Kind = Parameter::Kind;
using Field = KernelSignature::Field;
using Option = KernelSignature::Option;

/// Names understood beside a type's own.
constexpr std::array<std::pair<std::string_view, LeafKind>, 5> kAliases = {{
    {"rbf", LeafKind::squared_exponential},
    {"squared_exponential", LeafKind::squared_exponential},
    {"rational_quadratic", LeafKind::rational_quadratic},
    {"arc_cosine", LeafKind::arc_cosine},
    {"poly", LeafKind::polynomial},
}};

/// What users have registered. Nothing is ever removed, and a deque does not move what it holds, so
/// a pointer to a type stays good.
struct Registered {
  std::mutex mutex;
  std::deque<LeafType> types;
};

Registered& registered() {
  // Never destroyed: a kernel in a static object of the user's may outlive this file's statics.
  static auto* const all = new Registered;  // NOLINT(*-owning-memory)
  return *all;
}

void check_name(std::string_view what, std::string_view name) {
  const bool is_name = !name.empty() && !is_digit(name.front()) &&
                       std::ranges::all_of(name, is_word) && lower_case(name) == name;
  if (!is_name || name == kDims || name == kIn || name == kFixed) {
    invalid(
        "register_kernel: the name of {} is '{}', but must be of small letters, digits and "
        "underscores, not begin with a digit, and not be dims, in or fixed",
        what, name);
  }
}

void check_option(const KernelSignature& signature) {
  const Option& option = *signature.option;
  check_name(fmt::format("the integer of {}", signature.name), option.name);
  if (!(option.lowest <= option.initial && option.initial <= option.highest)) {
    invalid("register_kernel: {} of {} is {}, but must be from {} to {}", option.name,
            signature.name, option.initial, option.lowest, option.highest);
  }
}

void check_signature(const KernelSignature& signature) {
  check_name("the kernel", signature.name);
  std::vector<std::string_view> names;
  for (const Field& field : signature.fields) {
    check_name(fmt::format("a parameter of {}", signature.name), field.name);
    names.push_back(field.name);
    if (field.initial.values.size() != 1) {
      invalid("register_kernel: {} of {} starts with {} numbers, but must start with one",
              field.name, signature.name, field.initial.values.size());
    }
  }
  if (signature.option) {
    check_option(signature);
    names.push_back(signature.option->name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    invalid("register_kernel: {} has two parameters of the name {}", signature.name, *twice);
  }
}

const LeafType* find_own(std::string_view name) {
  for (const LeafType& type : leaf_types()) {
    if (type.signature.name == name) return &type;
  }
  for (const auto& [alias, kind] : kAliases) {
    if (alias == name) return &leaf_type(kind);
  }
  return nullptr;
}

/// The caller holds the lock.
const LeafType* find_registered(const Registered& all, std::string_view name) {
  const auto found = std::ranges::find_if(
      all.types, [&](const LeafType& type) { return type.signature.name == name; });
  return found == all.types.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<LeafType>& leaf_types() {
  const Field variance{.name = "variance", .kind = Kind::variance};
  const Field lengthscale{.name = "lengthscale", .kind = Kind::lengthscale, .per_dimension = true};
  const Field period{.name = "period", .kind = Kind::period};
  const Field alpha{.name = "alpha", .kind = Kind::shape};
  const Field slope{.name = "variance", .kind = Kind::weight};
  const Field slopes{.name = "variance", .kind = Kind::weight, .per_dimension = true};
  const Field weights{.name = "weight_variance", .kind = Kind::weight, .per_dimension = true};
  const Field offset{.name = "offset", .kind = Kind::offset};
  const Field bias{.name = "bias_variance", .kind = Kind::offset};
  static const std::vector<LeafType> types{
      {LeafKind::squared_exponential, {"se", {variance, lengthscale}}},
      {LeafKind::matern12, {"matern12", {variance, lengthscale}}},
      {LeafKind::matern32, {"matern32", {variance, lengthscale}}},
      {LeafKind::matern52, {"matern52", {variance, lengthscale}}},
      {LeafKind::rational_quadratic, {"rq", {variance, lengthscale, alpha}}},
      {LeafKind::periodic, {"periodic", {variance, lengthscale, period}}},
      {LeafKind::linear, {"linear", {slopes}}},
      {LeafKind::polynomial, {"polynomial", {slope, offset}, Option{"degree", 1, 20, 2}}},
      {LeafKind::constant, {"constant", {variance}, std::nullopt, false}},
      {LeafKind::arc_cosine, {"arccos", {variance, weights, bias}, Option{"order", 0, 2, 1}}},
  };
  return types;
}

const LeafType* find_leaf_type(std::string_view name) {
  if (const LeafType* own = find_own(name)) return own;
  Registered& all = registered();
  const std::scoped_lock lock(all.mutex);
  return find_registered(all, name);
}

std::vector<std::string_view> leaf_names() {
  std::vector<std::string_view> names;
  for (const LeafType& type : leaf_types()) names.push_back(type.signature.name);
  {
    Registered& all = registered();
    const std::scoped_lock lock(all.mutex);
    for (const LeafType& type : all.types) names.push_back(type.signature.name);
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string_view> leaf_aliases() {
  std::vector<std::string_view> names;
  names.reserve(kAliases.size());
  for (const auto& [alias, kind] : kAliases) names.push_back(alias);
  return names;
}

void register_kernel(std::shared_ptr<const KernelFormula> formula) {
  if (formula == nullptr) invalid("register_kernel: the formula is null, but must be an object");
  LeafType type{LeafKind::custom, formula->signature(), std::move(formula)};
  check_signature(type.signature);
  // A leaf of initial values checks these and their bounds.
  std::vector<Positive> initial;
  initial.reserve(type.signature.fields.size());
  for (const Field& field : type.signature.fields) initial.push_back(field.initial);
  (void)make_leaf(type, std::move(initial), type.signature.option.value_or(Option{}).initial, {});

  const std::string name = type.signature.name;
  if (find_own(name) != nullptr) {
    invalid("register_kernel: {} is a kernel of the library, but the name must be a new one", name);
  }
  Registered& all = registered();
  const std::scoped_lock lock(all.mutex);
  if (find_registered(all, name) != nullptr) {
    invalid("register_kernel: {} is registered already, but the name must be a new one", name);
  }
  all.types.push_back(std::move(type));
}

std::vector<KernelSignature> kernel_signatures() {
  std::vector<KernelSignature> signatures;
  for (const LeafType& type : leaf_types()) signatures.push_back(type.signature);
  Registered& all = registered();
  const std::scoped_lock lock(all.mutex);
  for (const LeafType& type : all.types) signatures.push_back(type.signature);
  return signatures;
}

Kernel make_kernel(std::string_view name, std::vector<Positive> parameters, Dimensions dims,
                   std::optional<int> option) {
  const LeafType* type = find_leaf_type(name);
  if (type == nullptr) {
    invalid("make_kernel: no kernel has the name '{}', but it must be registered first", name);
  }
  const KernelSignature& signature = type->signature;
  if (parameters.size() > signature.fields.size()) {
    invalid("make_kernel: {} parameters are given, but {} takes {}", parameters.size(), name,
            signature.fields.size());
  }
  if (option && !signature.option) invalid("make_kernel: {} takes no integer", name);
  if (!dims.empty() && !signature.has_dims) invalid("make_kernel: {} takes no dims", name);
  for (std::size_t f = 0; f < signature.fields.size(); ++f) {
    const Positive& initial = signature.fields[f].initial;
    if (f == parameters.size()) {
      parameters.push_back(initial);
    } else if (parameters[f].lower == Positive::kDefaultLower &&
               parameters[f].upper == Positive::kDefaultUpper) {
      parameters[f] = parameters[f].within(initial.lower, initial.upper);
    }
  }
  const int number = option.value_or(signature.option.value_or(Option{}).initial);
  return KernelAccess::kernel(make_leaf(*type, std::move(parameters), number, std::move(dims)));
}

}  // namespace ample
