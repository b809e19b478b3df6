// EnvelopeMembers: what one look over a message in another encoding than JSON finds, so that nobody looks for it again:
// its shape, and where the members of its envelope are that somebody asks for. It views the message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wirecall/message.hpp"

namespace wirecall::message {

/// The member that JSON-RPC or this contract names so; nothing for other names.
[[nodiscard]] inline std::optional<Member> envelope_member(std::string_view name) noexcept {
  const auto is = [&](std::string_view wanted, Member member) {
    return name == wanted ? std::optional{member} : std::nullopt;
  };
  switch (name.size()) {
    case 2: return name == "id" ? Member::id : is("to", Member::to);
    case 4: return name == "from" ? Member::from : is("hops", Member::hops);
    case 5: return name == "error" ? Member::error : is("input", Member::input);
    case 6:
      if (name == "method") return Member::method;
      if (name == "params") return Member::params;
      return name == "result" ? Member::result : is("stream", Member::stream);
    case 7: return is("jsonrpc", Member::jsonrpc);
    case 10: return name == "timeout_ms" ? Member::timeout_ms : is("tracestate", Member::tracestate);
    case 11: return is("traceparent", Member::traceparent);
    default: return std::nullopt;
  }
}
/// Whether there is one.
[[nodiscard]] inline bool is_envelope_name(std::string_view name) noexcept { return envelope_member(name).has_value(); }
/// Of those: whether it is none of those whose values are the users'.
[[nodiscard]] inline bool is_term(std::string_view name) noexcept {
  return is_envelope_name(name) && name != "params" && name != "result" && name != "error";
}

/// The id of a request as JSON, and the names of clients in one of Protocol Buffers. It lasts as long as anybody serves
/// the request.
using IdText = std::array<char, 64>;

/// One member of an envelope: which, its name as a string, and its value as it is encoded.
struct EnvelopeMember {
  Member member;
  std::string_view name;
  std::string_view value;
};

/// The members of a single envelope that JSON-RPC or this contract names, in the order in which they came.
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
  /// The first that is that; null where there is none.
  [[nodiscard]] const EnvelopeMember* find(Member wanted) const noexcept {
    for (const EnvelopeMember& one : view()) {
      if (one.member == wanted) return &one;
    }
    return nullptr;
  }

  void begin_single() noexcept {
    count_ = 0;
    present_ = 0;
    integer_count = 0;
    single_ = all_ = usual_ = true;
  }
  void begin_batch(std::size_t size) noexcept { batch_size_ = size; }
  /// Where it is one.
  [[gnu::always_inline]] void add(std::string_view name, std::string_view value) noexcept {
    const std::optional<Member> member = envelope_member(name);
    if (!member) return;
    usual_ = usual_ && *member != Member::jsonrpc && *member != Member::method;  // which have not been looked at
    add_known(*member, name, value);
  }
  [[gnu::always_inline]] void add_known(Member member, std::string_view name, std::string_view value) noexcept {
    if (count_ == kMembersMax) {
      all_ = false;
      return;
    }
    usual_ = usual_ && (present_ & bit_of(member)) == 0;
    present_ |= bit_of(member);
    members_[count_++] = {member, name, value};
  }
  /// The version is another than "2.0", or the method is no short string of ASCII without anything that JSON escapes.
  void add_unusual() noexcept { usual_ = false; }
  /// One whose name has to be looked at in another way.
  void add_unknown() noexcept { all_ = false; }
  void forget() noexcept {
    single_ = all_ = usual_ = false;
    batch_size_ = 0;
  }

  /// Whether all are here, each once, of the usual version and with a usual method. Only a walk that has looked at
  /// these says so.
  [[nodiscard]] bool are_usual() const noexcept { return all_ && usual_; }
  /// bit_of each.
  [[nodiscard]] std::uint32_t present() const noexcept { return present_; }

  /// As Received::integers.
  std::uint8_t integer_count = 0;
  std::array<std::uint32_t, kIntegersKept> integers;

 private:
  union {
    EnvelopeMember members_[kMembersMax];
  };
  std::size_t count_ = 0;
  std::size_t batch_size_ = 0;
  std::uint32_t present_ = 0;
  bool usual_ = false;
  bool single_ = false;
  bool all_ = false;
};

}  // namespace wirecall::message
