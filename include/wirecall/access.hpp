// Principal: who a caller is, as its token says, and what it may do (docs/access.md). Values; Options::principals has
// them. Where there are none nobody has to authenticate, and everybody may do everything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wirecall {

/// Names and patterns are those of methods and topics: "gpu.add"; "gpu.*" for any one word; "gpu.>" for all that
/// begin so; ">" for all, but those of wirecall's own.
struct Principal {
  std::string name;
  /// Each of 1 to 4096 visible ASCII characters, and nobody else's. It is told to nobody, and to no log.
  std::vector<std::string> tokens;
  std::vector<std::string> call;       ///< methods that it may call; others do not exist for it
  std::vector<std::string> provide;    ///< methods that it may register
  std::vector<std::string> publish;    ///< topics
  std::vector<std::string> subscribe;  ///< topics; a pattern, if it lies wholly within one of these
  bool admin = false;                  ///< it may see all clients, and kick them

  bool operator==(const Principal&) const = default;
};

/// Whether it is one that can be shown: 1 to 4096 visible ASCII characters.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

}  // namespace wirecall
