// What a node says of the names of its clients, to whom calls of other nodes may be addressed: JSON, {"set":
// ["worker"], "gone": ["ada"]}. Pure. Implements docs/cluster.md "Clients".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wirecall::cluster {

struct ClientNews {
  std::vector<std::string> set;   ///< somebody has that name
  std::vector<std::string> gone;  ///< nobody has it any more

  void add(std::string_view name, bool there) { (there ? set : gone).emplace_back(name); }
  [[nodiscard]] std::size_t size() const noexcept { return set.size() + gone.size(); }
};
/// So many names go into one record.
inline constexpr std::size_t kClientsInRecord = 256;

}  // namespace wirecall::cluster
