// See json_options.hpp.
#include "c/json_options.hpp"

#include <optional>
#include <stdexcept>
#include <string>

#include "wirecall/reflect.hpp"

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

template <class T>
T members_of(std::string_view json) {
  if (json.empty()) return {};
  std::expected<T, Error> members = from_json<T>(json);
  if (!members)
    throw std::invalid_argument("the options are not what they have to be: " + members.error().message() + " " +
                                members.error().data());
  return std::move(*members);
}

}  // namespace

ProvideOptions provide_options(std::string_view json) {
  ProvideMembers members = members_of<ProvideMembers>(json);
  ProvideOptions options;
  options.concurrency = members.concurrency;
  options.queue = members.queue;
  options.policy = std::move(members.policy).value_or("");
  options.idempotent = members.idempotent.value_or(false);
  return options;
}

SubscribeOptions subscribe_options(std::string_view json) {
  SubscribeMembers members = members_of<SubscribeMembers>(json);
  return {.group = std::move(members.group).value_or(""),
          .echo = members.echo.value_or(false),
          .last = members.last.value_or(false)};
}

}  // namespace wirecall::c
