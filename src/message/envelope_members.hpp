// EnvelopeMembers: what one look over a message in another encoding than JSON finds, so that nobody looks for it again:
// its shape, and where the members of its envelope are that somebody asks for. It views the message.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace wirecall::message {

/// Whether JSON-RPC or this contract names a member so.
[[nodiscard]] bool is_envelope_name(std::string_view name) noexcept;
/// Of those: whether it is none of those whose values are the users'.
[[nodiscard]] inline bool is_term(std::string_view name) noexcept {
  return is_envelope_name(name) && name != "params" && name != "result" && name != "error";
}

/// One member of an envelope: its name as a string, and its value as it is encoded.
struct EnvelopeMember {
  std::string_view name;
  std::string_view value;
};

/// The members of a single envelope that is_envelope_name, in the order in which they came.
class EnvelopeMembers {
 public:
  /// An envelope has more only where a name comes twice.
  static constexpr std::size_t kMembersMax = 16;

  EnvelopeMembers() noexcept {}  // whose members are no more than count_

  /// One envelope, and no batch.
  [[nodiscard]] bool is_single() const noexcept { return single_; }
  /// The elements of a batch; 0 for what is none.
  [[nodiscard]] std::size_t batch_size() const noexcept { return batch_size_; }
  /// Whether all of them are here: not of a batch, nor of an envelope that has too many, or names in unusual forms.
  [[nodiscard]] bool are_all() const noexcept { return all_; }
  [[nodiscard]] std::span<const EnvelopeMember> view() const noexcept { return {members_, count_}; }
  /// The first of that name; null where there is none.
  [[nodiscard]] const EnvelopeMember* find(std::string_view name) const noexcept {
    for (const EnvelopeMember& member : view()) {
      if (member.name == name) return &member;
    }
    return nullptr;
  }

  void begin_single() noexcept {
    count_ = 0;
    single_ = all_ = true;
  }
  void begin_batch(std::size_t size) noexcept { batch_size_ = size; }
  void add(std::string_view name, std::string_view value) noexcept {
    if (count_ == kMembersMax) {
      all_ = false;
      return;
    }
    members_[count_++] = {name, value};
  }
  /// One whose name has to be looked at in another way.
  void add_unknown() noexcept { all_ = false; }
  void forget() noexcept {
    single_ = all_ = false;
    batch_size_ = 0;
  }

 private:
  union {
    EnvelopeMember members_[kMembersMax];
  };
  std::size_t count_ = 0;
  std::size_t batch_size_ = 0;
  bool single_ = false;
  bool all_ = false;
};

}  // namespace wirecall::message
