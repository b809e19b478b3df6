// See listed_methods.hpp.
#include "rpc/listed_methods.hpp"

#include <algorithm>

#include "rpc/access.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {

std::vector<ListedMethod> list_own(const Registry& registry, const Principal* principal) {
  std::vector<ListedMethod> listed;
  for (const auto& method : registry.methods()) {
    if (!may_call(principal, method->name())) continue;
    listed.push_back({.name = method->name(),
                      .summary = method->summary(),
                      .policy = "exclusive",
                      .providers = 1,
                      .in_flight = 0,
                      .waiting = 0});
  }
  return listed;
}

std::string json_of(std::vector<ListedMethod> listed) {
  std::ranges::sort(listed, {}, &ListedMethod::name);
  return to_json(listed);
}

}  // namespace wirecall::rpc
