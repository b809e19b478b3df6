// See json_options.hpp.
#include "c/json_options.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::c {
namespace {

struct ProvideMembers {
  std::optional<std::uint32_t> concurrency;
  std::optional<std::uint32_t> queue;
  std::optional<std::string> policy;
  std::optional<bool> idempotent;
};
struct SubscribeMembers {
  std::optional<std::string> group;
  std::optional<bool> echo;
  std::optional<bool> last;
};

[[noreturn]] void refuse(std::string_view why) {
  throw std::invalid_argument("the options are not what they have to be: " + std::string{why});
}

template <class T>
T members_of(std::string_view json, std::span<const std::string_view> names) {
  if (json.empty()) return {};
  const std::expected<std::map<std::string, Raw>, Error> all = from_json<std::map<std::string, Raw>>(json);
  if (!all) refuse("they are no JSON object");
  for (const auto& [name, value] : *all) {
    if (std::ranges::find(names, name) == names.end()) refuse("there is no " + name);
  }
  std::expected<T, Error> members = from_json<T>(json);
  if (!members) refuse(members.error().message() + " " + members.error().data());
  return std::move(*members);
}

constexpr std::string_view kProvideNames[] = {"concurrency", "queue", "policy", "idempotent"};
constexpr std::string_view kSubscribeNames[] = {"group", "echo", "last"};

}  // namespace

ProvideOptions provide_options(std::string_view json) {
  ProvideMembers members = members_of<ProvideMembers>(json, kProvideNames);
  ProvideOptions options;
  options.concurrency = members.concurrency;
  options.queue = members.queue;
  options.policy = std::move(members.policy).value_or("");
  options.idempotent = members.idempotent.value_or(false);
  return options;
}

SubscribeOptions subscribe_options(std::string_view json) {
  SubscribeMembers members = members_of<SubscribeMembers>(json, kSubscribeNames);
  return {.group = std::move(members.group).value_or(""),
          .echo = members.echo.value_or(false),
          .last = members.last.value_or(false)};
}

}  // namespace wirecall::c
