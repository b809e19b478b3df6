// Walks over messages in MessagePack, made for many small values. walk_message() checks one message and remembers where
// the members of its envelope are that somebody asks for, so that nobody looks for them again; end_of() passes over a
// value that has been checked. What is taken and what is not is the same as in codec/msgpack_scan.hpp, which is the
// slow twin that they are tested against.
// Pure functions over memory of the caller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wirecall/codec.hpp"

namespace wirecall::message {

/// Whether JSON-RPC or this contract names a member so.
[[nodiscard]] bool is_envelope_name(std::string_view name) noexcept;

/// One member of an envelope: its name as a string, and its value in MessagePack.
struct MsgpackMember {
  std::string_view name;
  std::string_view value;
};

/// The members of a single envelope that is_envelope_name, in the order in which they came. It views the message.
class MsgpackMembers {
 public:
  /// An envelope has more only where a name comes twice.
  static constexpr std::size_t kMembersMax = 16;

  MsgpackMembers() noexcept {}  // whose members are no more than count_

  /// Whether all of them are here: not of a batch, nor of an envelope that has too many.
  [[nodiscard]] bool are_all() const noexcept { return all_; }
  [[nodiscard]] std::span<const MsgpackMember> view() const noexcept { return {members_, count_}; }
  /// The first of that name; null where there is none.
  [[nodiscard]] const MsgpackMember* find(std::string_view name) const noexcept {
    for (const MsgpackMember& member : view()) {
      if (member.name == name) return &member;
    }
    return nullptr;
  }

  void begin() noexcept {
    count_ = 0;
    all_ = true;
  }
  void add(std::string_view name, std::string_view value) noexcept {
    if (count_ == kMembersMax) {
      all_ = false;
      return;
    }
    members_[count_++] = {name, value};
  }
  void forget() noexcept { all_ = false; }

 private:
  union {
    MsgpackMember members_[kMembersMax];
  };
  std::size_t count_ = 0;
  bool all_ = false;
};

/// Whether `message` is one whole value and nothing behind it: complete, too_deep, or else malformed.
[[nodiscard]] ScanStatus walk_message(std::string_view message, std::uint32_t depth_max,
                                      MsgpackMembers& members) noexcept;

/// The end of the value at `p`, which has been checked.
[[nodiscard]] const char* end_of(const char* p) noexcept;

}  // namespace wirecall::message
