// Principal: an identity that a token or a client certificate proves, and what it may do (docs/access.md). A value;
// Options::principals lists them. With an empty list nobody has to authenticate, and everybody may do everything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall {

/// The lists hold names and patterns of methods and topics: "gpu.add" is one name, "gpu.*" has any one word for `*`,
/// "gpu.>" is every name that begins with "gpu.", and ">" is every name except wirecall's own (rpc.…). In `call`,
/// "!gpu.reset" and "!gpu.*" take out what others of the list grant.
struct Principal {
  std::string name;
  /// Secrets that prove this identity: each of 1 to 4096 visible ASCII characters, and of no other principal. Never
  /// written to a log or an error text.
  std::vector<std::string> tokens;
  /// Client certificates that prove this identity, by one of their subject alternative names: "dns:worker.example",
  /// "uri:spiffe://example/worker", "email:ada@example.com" or "ip:10.0.0.7"; the whole name, and of no other principal
  /// (docs/tls.md).
  std::vector<std::string> certificates = {};
  std::vector<std::string> call;     ///< methods that it may call; others are -32601 for it
  std::vector<std::string> provide;  ///< methods that it may register
  std::vector<std::string> publish;  ///< topics that it may publish to
  std::vector<std::string>
      subscribe;       ///< topics and patterns that it may subscribe to: those wholly within one of these
  bool admin = false;  ///< it may list, kick and tap all clients

  bool operator==(const Principal&) const = default;
};

/// Whether `text` is a valid token: 1 to 4096 visible ASCII characters.
[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  constexpr std::size_t kTokenBytesMax = 4096;
  for (const char c : text) {
    if (c <= ' ' || c >= 0x7F) return false;
  }
  return !text.empty() && text.size() <= kTokenBytesMax;
}

}  // namespace wirecall
