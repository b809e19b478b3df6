// NamedCredentials: of a principal that shows nothing, and is known by its name: a node vouches for it, or the options
// name it. `revoked` is what its calls end with where there is none of that name any more. One thread.
#pragma once

#include <string_view>

#include "message/own_error.hpp"
#include "rpc/access.hpp"

namespace wirecall::cluster {

class NamedCredentials final : public rpc::CredentialKind {
 public:
  /// `revoked` outlives it.
  explicit constexpr NamedCredentials(std::string_view revoked) noexcept : revoked_(revoked) {}

  [[nodiscard]] std::string_view revoked() const noexcept override { return revoked_; }
  [[nodiscard]] const Principal* find(const rpc::Authority& authority, std::string_view shown) const noexcept override {
    return authority.find_named(shown);
  }

 private:
  std::string_view revoked_;
};

/// What calls end with that are in progress when their principal is given other grants, or goes.
[[nodiscard]] inline Error principal_changed() {
  return message::make(ErrorCode::unauthenticated, "the principal may do other things than before", "maybe");
}

}  // namespace wirecall::cluster
