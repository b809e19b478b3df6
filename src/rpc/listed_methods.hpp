// What rpc.methods answers: the methods that can be called, as `wirecall ls` shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/access.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

struct ListedMethod {
  std::string_view name;
  std::string_view summary;
  std::string policy;
  std::size_t providers;
  std::size_t in_flight;  ///< at providers
  std::size_t waiting;
};

/// Those of the process's own that `principal` may call; of null all.
[[nodiscard]] std::vector<ListedMethod> list_own(const Registry& registry, const Principal* principal);
/// As JSON, by their names.
[[nodiscard]] std::string json_of(std::vector<ListedMethod> listed);

}  // namespace wirecall::rpc
